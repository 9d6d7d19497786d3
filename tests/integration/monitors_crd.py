"""What the Prometheus operator's own definitions say of the fields that we use."""

from testing.foreign_kinds import definition

DURATION = {
    "type": "string",
    "pattern": r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$",
}
ENDPOINT = {
    "port": {"type": "string"}, "path": {"type": "string"}, "interval": DURATION, "scrapeTimeout": DURATION,
    "scheme": {"type": "string", "enum": ["http", "https"]}, "honorLabels": {"type": "boolean"},
}  # fmt: skip
RULES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["drop", "keep", "labeldrop", "labelkeep", "replace"]},
            "regex": {"type": "string"}, "targetLabel": {"type": "string"}, "replacement": {"type": "string"},
            "sourceLabels": {"type": "array", "items": {"type": "string"}},
        },
    },
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

POD_SPEC = {
    "type": "object",
    "required": ["podMetricsEndpoints", "selector"],
    "properties": {
        "jobLabel": {"type": "string"},
        "selector": SPEC["properties"]["selector"],
        "podMetricsEndpoints": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": ENDPOINT | {"relabelings": RULES, "metricRelabelings": RULES},
            },
        },
    },
}

MONITORS = definition("monitoring.coreos.com", "ServiceMonitor", SPEC)
POD_MONITORS = definition("monitoring.coreos.com", "PodMonitor", POD_SPEC)
