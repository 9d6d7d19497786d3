"""Fields in which Slinky's CRDs take null, as its 1.x releases define them: their charts write it into some of these.

Each is a path below `spec`, and a value that means something there. Outside of overrides null means absent.
"""

from typing import Any

_SOME = {"a": "b"}


def _metadata(*parts: str) -> dict[str, Any]:
    return {f"{part}.metadata.{field}": _SOME for part in parts for field in ("labels", "annotations")}


_REFS = {
    f"{name}Refs": [{"name": "files"}]
    for name in (
        "configFile",
        "prologScript",
        "epilogScript",
        "prologSlurmctldScript",
        "epilogSlurmctldScript",
    )
}
_MONITOR = {
    "metrics.serviceMonitor": {"enabled": True},
    "metrics.serviceMonitor.labels": _SOME,
    "metrics.serviceMonitor.annotations": _SOME,
    "metrics.serviceMonitor.endpoints": [{"path": "/metrics/jobs"}],
}
_CLAIM = {"metadata": {"name": "scratch"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}

NULLABLE: dict[str, dict[str, Any]] = {
    "Controller": {**_REFS, **_MONITOR, **_metadata("service", "template")},
    "NodeSet": {
        **_metadata("template"),
        "volumeClaimTemplates": [_CLAIM],
        "updateStrategy.scheduledUpdate.flags": ["WEEKLY"],
    },
    "LoginSet": _metadata("service", "template"),
    # The template of a database of its own is ours, and the same metadata.
    "Accounting": _metadata("service", "template", "managed.template"),
    "RestApi": _metadata("service", "template", "exporter.template"),
}

# Where a Cluster holds the same settings.
_IN_A_CLUSTER = {
    "Controller": "controller",
    "NodeSet": "nodeSets.0",
    "LoginSet": "logins.0",
    "Accounting": "accounting",
    "RestApi": "restApi",
}

FIELDS: list[tuple[str, str, Any]] = [
    *((kind, "children.labels", _SOME) for kind in NULLABLE),
    *((kind, path, value) for kind, fields in NULLABLE.items() for path, value in fields.items()),
    *(
        ("Cluster", f"{_IN_A_CLUSTER[kind]}.{path}", value)
        for kind, fields in NULLABLE.items()
        for path, value in fields.items()
    ),
    # Its own lists: a chart renders null for one that nobody filled.
    *(("Cluster", path, [{"name": "other"}]) for path in ("logins", "nodeSets", "partitions")),
]

# Valid without any of the fields above.
_CONTROLLED = {"controllerRef": {"name": "slurm"}}
SMALLEST: dict[str, dict[str, Any]] = {
    "Controller": {},
    "NodeSet": _CONTROLLED,
    "LoginSet": _CONTROLLED | {"sssdConfRef": {"name": "sssd", "key": "sssd.conf"}},
    "Accounting": {"managed": {}},
    "RestApi": _CONTROLLED,
    "Token": {"username": "alice", "jwtKeyRef": {"name": "key", "key": "jwt.key"}},
    "Cluster": {"nodeSets": [{"name": "cpu"}], "logins": [{"name": "login"}], "accounting": {"managed": {}}},
}


# Objects of which an empty one says the same as none: server-side apply puts null in its place.
_CONTAINER = {"image": "i"}


def _emptied(*containers: str, service: bool = True, template: str = "template") -> dict[str, Any]:
    return {
        **dict.fromkeys(containers, _CONTAINER),
        template: {"metadata": {"labels": _SOME}},
        f"{template}.metadata": {"labels": _SOME},
        f"{template}.spec": {"priorityClassName": "high"},
        **({"service": {"port": 7}, "service.metadata": {"labels": _SOME}} if service else {}),
        **({"service.spec": {"type": "NodePort"}} if service else {}),
    }


EMPTIED: dict[str, dict[str, Any]] = {
    "Controller": {
        **_emptied("slurmctld", "reconfigure", "logfile"),
        "persistence.resources": {"requests": {"storage": "1Gi"}},
        "persistence.selector": {"matchLabels": _SOME},
        "persistence.dataSource": {"kind": "PersistentVolumeClaim", "name": "old"},
        "persistence.dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "old"},
    },
    "NodeSet": _emptied("slurmd", "logfile", service=False),
    "LoginSet": {**_emptied("login", "initconf"), "strategy": {"type": "Recreate"}},
    "Accounting": {
        **_emptied("slurmdbd"),
        **_emptied("managed.mariadb", service=False, template="managed.template"),
    },
    "RestApi": {
        **_emptied("slurmrestd"),
        **_emptied(service=False, template="exporter.template"),
        "exporter.serviceMonitor.labels": _SOME,
    },
}
EMPTY_FIELDS: list[tuple[str, str, Any]] = [
    *((kind, "children.labels", _SOME) for kind in NULLABLE),
    *((kind, path, value) for kind, fields in EMPTIED.items() for path, value in fields.items()),
    *(
        ("Cluster", f"{_IN_A_CLUSTER[kind]}.{path}", value)
        for kind, fields in EMPTIED.items()
        for path, value in fields.items()
    ),
    ("Cluster", "images", {"slurmd": "i"}),
    *((kind, "children", {"labels": _SOME}) for kind in NULLABLE),
    *((kind, "auth.munge", _CONTAINER) for kind in ("Controller", "Accounting")),
    # Of older manifests, and ignored.
    ("NodeSet", "selector", {"matchLabels": _SOME}),
    ("Accounting", "initconf", _CONTAINER),
    ("Cluster", "controller.persistence", {"resources": {"requests": {"storage": "1Gi"}}}),
]


def manifest(kind: str, name: str, path: str, value: Any) -> dict[str, Any]:
    """The smallest object of a kind with this value at one path of its spec; `...` leaves it out, its parents stay."""
    spec: dict[str, Any] = _copy(SMALLEST[kind])
    *parents, last = path.split(".")
    place: Any = spec
    for parent in parents:
        place = place[int(parent)] if parent.isdecimal() else place.setdefault(parent, {})
    if value is ...:
        place.pop(last, None)
    else:
        place[last] = value
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
