"""Kinds of other projects that our charts make objects of, as far as these use them: a field we misspell is refused."""

from typing import Any

_TEXT = {"type": "string"}
_SWITCH = {"type": "boolean"}
_LABELS = {"type": "object", "additionalProperties": _TEXT}
# As the Prometheus operator and cert-manager (Go) spell durations.
_PROMETHEUS_TIME = {"type": "string", "pattern": r"^(0|(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?)$"}
_GO_TIME = {"type": "string", "pattern": r"^([0-9]+h)?([0-9]+m)?([0-9]+s)?$"}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        **({"required": list(required)} if required else {}),
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


_ENDPOINT = _object(
    ("port",),
    port=_TEXT,
    interval=_PROMETHEUS_TIME,
    scrapeTimeout=_PROMETHEUS_TIME,
    scheme={"type": "string", "enum": ["http", "https"]},
    bearerTokenFile=_TEXT,
    tlsConfig=_object(insecureSkipVerify=_SWITCH),
)
_RULE = _object(
    ("expr",),
    **{"alert": _TEXT, "expr": _TEXT, "for": _PROMETHEUS_TIME, "labels": _LABELS, "annotations": _LABELS},
)

MONITORING = {
    "ServiceMonitor": _object(
        ("endpoints", "selector"),
        jobLabel=_TEXT,
        endpoints=_list(_ENDPOINT),
        selector=_object(matchLabels=_LABELS),
    ),
    "PodMonitor": _object(
        ("podMetricsEndpoints", "selector"),
        podMetricsEndpoints=_list(_ENDPOINT),
        selector=_object(matchLabels=_LABELS),
    ),
    "PrometheusRule": _object(groups=_list(_object(("name",), name=_TEXT, rules=_list(_RULE)))),
}
CERT_MANAGER = {
    "Issuer": _object(selfSigned=_object(), ca=_object(("secretName",), secretName=_TEXT)),
    "Certificate": _object(
        ("secretName", "issuerRef"),
        isCA=_SWITCH,
        commonName=_TEXT,
        dnsNames=_list(_TEXT),
        secretName=_TEXT,
        duration=_GO_TIME,
        renewBefore=_GO_TIME,
        issuerRef=_object(("name",), kind=_TEXT, name=_TEXT),
    ),
}


def definitions() -> list[dict[str, Any]]:
    """Custom resource definitions of all of them."""
    groups = {"monitoring.coreos.com": MONITORING, "cert-manager.io": CERT_MANAGER}
    return [definition(group, kind, spec) for group, kinds in groups.items() for kind, spec in kinds.items()]


def definition(
    group: str, kind: str, spec: dict[str, Any], *, version: str = "v1", status: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The custom resource definition of a kind with this spec, and no more."""
    plural = f"{kind.lower()}s"
    fields = {"spec": spec, **({"status": status} if status is not None else {})}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object(("spec",), **fields)},
        **({"subresources": {"status": {}}} if status is not None else {}),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [served],
        },
    }
