"""The CRDs of Slinky 1.3, in our own words: the fields of status, the columns and the scale subresource that they have.

Specs are open here; what their schema says about specs is nothing that the operator writes.
"""

from typing import Any

from testing.slinky_charts import GROUP, KINDS

_INTEGER = {"type": "integer", "format": "int32"}
_TEXT = {"type": "string"}
_CONDITIONS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "message": {"type": "string", "maxLength": 32768},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "type": {"type": "string", "maxLength": 316},
        },
    },
}
_COUNTS = (
    "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "desired",
    "slurmIdle", "slurmAllocated", "slurmDown", "slurmDrain", "collisionCount",
)  # fmt: skip

STATUSES: dict[str, dict[str, Any]] = {
    "Accounting": {},
    "Controller": {},
    "RestApi": {},
    "Token": {"issuedAt": {"type": "string", "format": "date-time"}},
    "LoginSet": {"replicas": _INTEGER, "selector": _TEXT},
    "NodeSet": {
        **dict.fromkeys(_COUNTS, _INTEGER),
        "observedGeneration": {"type": "integer", "format": "int64"},
        "nodeSetHash": _TEXT,
        "selector": _TEXT,
        "ordinalToNode": {"type": "object", "additionalProperties": _TEXT, "nullable": True},
    },
}
_REQUIRED = {"NodeSet": ["nodeSetHash", "selector"]}
_COLUMNS = {
    "NodeSet": {
        "DESIRED": ".status.desired",
        "REPLICAS": ".status.replicas",
        "UPDATED": ".status.updatedReplicas",
        "READY": ".status.readyReplicas",
    },
    "LoginSet": {"REPLICAS": ".status.replicas"},
}


def crd(kind: str) -> dict[str, Any]:
    """The CustomResourceDefinition of one of its kinds."""
    plural = KINDS[kind]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [_version(kind)],
        },
    }


def crds() -> list[dict[str, Any]]:
    return [crd(kind) for kind in KINDS]


def status_schema(kind: str) -> dict[str, Any]:
    fields = {"conditions": _CONDITIONS, **STATUSES[kind]}
    return {"type": "object", "required": _REQUIRED.get(kind, []), "properties": fields}


def _version(kind: str) -> dict[str, Any]:
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    columns = [
        {"name": name, "type": "integer", "jsonPath": path} for name, path in _COLUMNS.get(kind, {}).items()
    ]
    properties = {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": {"type": "object"},
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "status": status_schema(kind),
    }
    return {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}, **({"scale": scale} if kind in _COLUMNS else {})},
        "additionalPrinterColumns": columns,
    }
