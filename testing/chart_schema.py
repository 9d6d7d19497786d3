"""values.schema.json of a chart from its values.yaml: the types of the defaults, and what they cannot tell.

A value that nobody knows is allowed: an upgrade must not stop at it. The notes of a release list those instead, by
the tree of `known`.
"""

from pathlib import Path
from typing import Any

import yaml

from slurm_operator.api import registry
from slurm_operator.api.schema.model import fields_of

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
    "metricsSecure": {"type": ["boolean", "null"]},
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
    "logLevel": {"type": ["string", "integer", "null"]},
    "scriptPriority": {"type": ["string", "integer"]},
    "managed": {"type": ["object", "null"]},
    "a3mega": {"$ref": "#/$defs/machines"},
    "a3ultra": {"$ref": "#/$defs/machines"},
}
# Objects of Kubernetes and maps of people's own names: anything may stand in them.
OPEN = {
    "podSpec", "service", "metadata", "persistence", "slurmctld", "reconfigure", "logfile", "slurmrestd", "slurmdbd", "slurmd",
    "login", "initconf", "resources", "updateStrategy", "labels", "configMap", "passwordKeyRef", "serviceMonitor", "data",
}  # fmt: skip
# Maps whose entries look like another value.
ENTRIES = {"nodesets": "nodesetDefaults", "loginsets": "loginsetDefaults"}

# Values of other versions of the chart before ours, by where they stand: what became of them.
_NO_EFFECT = "has no effect: "
_INITCONF = {"initconf": f"{_NO_EFFECT}no such container is needed"}
_CONTAINER = {
    name: f"is read as {{0}}.{name}; write it there" for name in ("image", "imagePullPolicy", "resources")
}
OUTDATED: dict[str, dict[str, str]] = {
    "": {
        "slurmKeyRef": "is read as slurmKey.secretRef; write it there",
        "jwtHs256KeyRef": "is read as jwtKey.secretRef; write it there",
        "slurm-exporter": "is read as restapi.exporter.enabled; the rest of it has no effect",
    },
    "controller": {**_CONTAINER, **_INITCONF},
    "restapi": {**_CONTAINER, **_INITCONF},
    "accounting": {**_CONTAINER, **_INITCONF},
    "nodesetDefaults": {
        **_CONTAINER,
        "taintKubeNodes": f"{_NO_EFFECT}taint the Kubernetes nodes yourself; workers tolerate nodeset.slinky.slurm.net/worker",
        "useResourceLimits": f"{_NO_EFFECT}workers always take the limits of their container for their size",
    },
    "loginsetDefaults": {**_CONTAINER, "sssdConf": "is the sssd.conf of this LoginSet alone; sssd.conf is that of all"},
}  # fmt: skip
_MAIN = {
    "controller": "slurmctld",
    "restapi": "slurmrestd",
    "accounting": "slurmdbd",
    "nodesetDefaults": "slurmd",
    "loginsetDefaults": "login",
}

# Fields of a kind that its template writes in a way of its own, or under another name.
_WRITTEN: dict[str, set[str]] = {
    "Controller": {
        "slurmctld", "reconfigure", "logfile", "inplaceReconfigure", "template", "ha", "persistence", "configFileRefs",
        "prologScriptRefs", "epilogScriptRefs", "prologSlurmctldScriptRefs", "epilogSlurmctldScriptRefs", "service",
        "metrics", "clusterName", "slurmKeyRef", "jwtKeyRef", "jwksKeyRef", "accountingRef", "external", "externalConfig",
        "extraConf",
    },
    "Accounting": {
        "slurmdbd", "template", "extraConf", "service", "managed", "slurmKeyRef", "jwtKeyRef", "jwksKeyRef", "external",
        "externalConfig", "storageConfig",
    },
    "RestApi": {"replicas", "slurmrestd", "template", "service", "exporter", "controllerRef"},
    "LoginSet": {
        "replicas", "login", "initconf", "template", "rootSshAuthorizedKeys", "extraSshdConfig", "sssdConfRef", "strategy",
        "service", "controllerRef",
    },
    "NodeSet": {
        "replicas", "scalingMode", "slurmd", "logfile", "template", "extraConf", "partition", "ssh", "updateStrategy",
        "ordinalPadding", "pinToNode", "workloadDisruptionProtection", "pruneSlurmNodeRecords", "oversubscribeNode",
        "controllerRef",
    },
}  # fmt: skip
_SECTIONS = {
    "controller": "Controller",
    "restapi": "RestApi",
    "accounting": "Accounting",
    "nodesetDefaults": "NodeSet",
    "loginsetDefaults": "LoginSet",
}

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
            # Of the versions before 1.0 they were lists.
            made["properties"][name] = {
                "type": ["object", "array", "null"],
                "additionalProperties": _nullable(_object(values[like])),
            }
    if "partitions" in values:
        one = _nullable(_object(values["partitions"]["all"]))
        made["properties"]["partitions"] = {"type": ["object", "array", "null"], "additionalProperties": one}
    made["properties"] |= {"global": {}, "slurm-operator-crds": {}}
    defs = {"$defs": {"machines": MACHINES}} if "vendor" in values else {}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **defs, **made}


def passed_on() -> dict[str, list[str]]:
    """The fields of each kind that the slurm chart hands on as they are."""
    models = {one.kind.kind: one.model for one in registry.DEFAULT}
    return {
        kind: [
            field.name
            for field in fields_of(_spec(models[kind]))
            if not field.prop.deprecated and field.name not in written
        ]
        for kind, written in _WRITTEN.items()
    }


def _spec(model: Any) -> Any:
    return next(field.type for field in fields_of(model) if field.name == "spec")


def known(chart: str) -> dict[str, Any]:
    """Every value that a chart knows: a tree of names, `*` for any, and a text where it is an outdated one."""
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text()) or {}
    tree = _tree(values)
    tree |= {"global": True if chart == "slurm" else tree["global"], "slurm-operator-crds": True}
    if chart != "slurm":
        return tree
    for section, kind in _SECTIONS.items():
        tree[section] |= dict.fromkeys(passed_on()[kind], True)
        words = {name: text.format(_MAIN[section]) for name, text in OUTDATED[section].items()}
        tree[section] = {**words, **tree[section]}
    tree["loginsetDefaults"]["sssdConfRef"] = True
    tree |= OUTDATED[""]
    tree |= {name: {"*": tree[like]} for name, like in ENTRIES.items()}
    tree["partitions"] = {"*": tree["partitions"]["all"]}
    return tree


def _tree(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _tree(value) if isinstance(value, dict) and value and name not in OPEN else True
        for name, value in values.items()
    }


def _object(values: dict[str, Any]) -> dict[str, Any]:
    properties = {name: _schema(name, value) for name, value in values.items()}
    return {"type": "object", "properties": properties}


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
