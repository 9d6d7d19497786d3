"""What the Prometheus operator's own definition of ServiceMonitors says of the fields that we use."""

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

MONITORS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"spec": SPEC}}
                },
            }
        ],
    },
}
