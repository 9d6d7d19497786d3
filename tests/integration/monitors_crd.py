"""What the Prometheus operator's own definition of ServiceMonitors says of the fields that we use."""

from testing.foreign_kinds import definition

DURATION = {
    "type": "string",
    "pattern": r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$",
}
ENDPOINT = {
    "port": {"type": "string"}, "path": {"type": "string"}, "interval": DURATION, "scrapeTimeout": DURATION,
    "scheme": {"type": "string", "enum": ["http", "https"]},
}  # fmt: skip
SPEC = {
    "type": "object",
    "required": ["endpoints", "selector"],
    "properties": {
        "endpoints": {"type": "array", "items": {"type": "object", "properties": ENDPOINT}},
        "selector": {"type": "object", "properties": {"matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}}},
        "namespaceSelector": {"type": "object", "properties": {"matchNames": {"type": "array", "items": {"type": "string"}}}},
    },
}  # fmt: skip

MONITORS = definition("monitoring.coreos.com", "ServiceMonitor", SPEC)
