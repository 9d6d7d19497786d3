"""values.schema.json of a chart from its values.yaml: the types of the defaults, and what they cannot tell."""

from pathlib import Path
from typing import Any

import yaml

CHARTS = Path(__file__).parents[1] / "charts"

IMAGE = {
    "oneOf": [
        {"type": "string"},
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: {"type": ["string", "number", "null"]} for name in ("repository", "tag", "digest")
            },
        },
        {"type": "null"},
    ]
}
PORT = {"type": "integer", "minimum": 0, "maximum": 65535}
COUNT = {"type": ["integer", "null"], "minimum": 0}
TEXT = {"type": ["string", "null"]}
SHARE = {"type": ["integer", "string", "null"]}
PULL = {"type": ["string", "null"], "enum": ["Always", "IfNotPresent", "Never", "", None]}
FAILURE = {"type": "string", "enum": ["Fail", "Ignore"]}
MATCH = {"type": "string", "enum": ["Equivalent", "Exact"]}

# By the last word of a path, what its default alone does not say.
SAID: dict[str, dict[str, Any]] = {
    "image": IMAGE,
    "replicas": COUNT,
    "healthPort": {**PORT, "minimum": 1},
    "metricsPort": PORT,
    "serverPort": {**PORT, "minimum": 1},
    "imagePullPolicy": PULL,
    "failurePolicy": FAILURE,
    "matchPolicy": MATCH,
    "minAvailable": SHARE,
    "maxUnavailable": SHARE,
    "namespaces": TEXT,
    "scalingMode": {"type": "string", "enum": ["StatefulSet", "DaemonSet"]},
    "pruneSlurmNodeRecords": {"type": "string", "enum": ["Never", "NodeNotFound"]},
    "storageClassName": TEXT,
    "scriptPriority": {"type": ["string", "integer"]},
    "managed": {"type": ["object", "null"]},
    "a3mega": {"$ref": "#/$defs/machines"},
    "a3ultra": {"$ref": "#/$defs/machines"},
}
# Objects of Kubernetes and maps of people's own names: anything may stand in them.
OPEN = {
    "podSpec", "service", "metadata", "persistence", "slurmctld", "reconfigure", "logfile", "slurmrestd", "slurmdbd", "slurmd",
    "login", "initconf", "resources", "updateStrategy", "labels", "configMap", "passwordKeyRef", "serviceMonitor",
}  # fmt: skip
# Maps whose entries look like another value.
ENTRIES = {"nodesets": "nodesetDefaults", "loginsets": "loginsetDefaults"}

MACHINES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["targetNodeSet", "networks"],
        "properties": {
            "targetNodeSet": {"type": "string"},
            "nodePool": {"type": "string"},
            "networks": {"type": "array", "items": {"type": "string"}},
            "tcpxoImage": {"type": "string"},
        },
    },
}


def values_schema(chart: str) -> dict[str, Any]:
    """The schema of a chart's values."""
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text()) or {}
    made = _object(values)
    for name, like in ENTRIES.items():
        if like in values:
            made["properties"][name] = {
                "type": "object",
                "additionalProperties": _nullable(_object(values[like])),
            }
    if "partitions" in values:
        one = _nullable(_object(values["partitions"]["all"]))
        made["properties"]["partitions"] = {"type": "object", "additionalProperties": one}
    made["properties"] |= {"global": {}, "slurm-operator-crds": {}}
    defs = {"$defs": {"machines": MACHINES}} if "vendor" in values else {}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **defs, **made}


def _object(values: dict[str, Any]) -> dict[str, Any]:
    properties = {name: _schema(name, value) for name, value in values.items()}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _schema(name: str, default: Any) -> dict[str, Any]:
    if name in SAID:
        return SAID[name]
    match default:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": ["integer", "null"]}
        case list():
            return {"type": ["array", "null"]}
        case dict() if default and name not in OPEN:
            return _object(default)
        case dict():
            return {"type": ["object", "null"]}
        case _:
            return TEXT


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """An entry may leave out, or take back with null, whatever its defaults say."""
    return {**schema, "type": ["object", "null"]}
