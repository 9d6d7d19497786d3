"""What the user wrote, put over what we generate: Kubernetes' strategic merge, on plain data.

Maps merge, named list items merge by their name, other lists are replaced. What the user says explicitly
counts, also `false`, `0` and an empty string; `null` removes. A container that a daemon needs stays.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from slurm_operator.manifests.meta import Manifest

# The fields whose items have a name, and what that name is (x-kubernetes-patch-merge-key of the core kinds).
# Service ports have no containerPort; both spell their list `ports`, so the key is chosen by what is there.
ITEM_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "port"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "resourceClaims": ("name",),
    "claims": ("name",),
    "schedulingGates": ("name",),
    "ownerReferences": ("uid",),
}

# Lists where the user's items join ours: to tolerate one taint more does not mean to tolerate ours no longer.
JOINED = {"tolerations", "searches", "requiredDuringSchedulingIgnoredDuringExecution"}

# A volume, a probe handler and an environment value have one source: a new one takes the old one's place.
_PROBES = {"livenessProbe", "readinessProbe", "startupProbe"}
_HANDLERS = {"exec", "httpGet", "tcpSocket", "grpc"}
_ENV_VALUES = {"value", "valueFrom"}

_DIRECTIVE = "$patch"


def merged(base: Any, patch: Any, field: str = "") -> Any:
    """`patch` over `base`. Neither is changed."""
    if isinstance(base, Mapping) and isinstance(patch, Mapping):
        return _merged_maps(base, patch, field)
    if isinstance(base, list | tuple) and isinstance(patch, list | tuple):
        return _merged_lists(base, patch, field)
    return _without_directives(patch)


def merged_container(base: Manifest, patch: Manifest) -> Manifest:
    """A container of ours with the user's wishes: as `merged`, but arguments are added to ours."""
    result: Manifest = merged(base, {key: value for key, value in patch.items() if key != "args"})
    if patch.get("args") is not None:
        result["args"] = [*base.get("args", ()), *patch["args"]]
    return result


def merged_pod(base: Manifest, patch: Manifest, required: Collection[str] = ()) -> Manifest:
    """A pod spec of ours with the user's wishes; `required` containers survive whatever the user wrote."""
    result: Manifest = merged(base, patch)
    for field in ("containers", "initContainers"):
        kept = {container.get("name") for container in result.get(field) or ()}
        lost = [
            container
            for container in base.get(field, ())
            if container["name"] in required and container["name"] not in kept
        ]
        if lost:
            result[field] = [*lost, *(result.get(field) or ())]
    return result


def _merged_maps(base: Mapping[str, Any], patch: Mapping[str, Any], field: str) -> Manifest:
    if patch.get(_DIRECTIVE) == "replace":
        return {key: _without_directives(value) for key, value in patch.items() if key != _DIRECTIVE}
    result = {key: value for key, value in base.items() if key not in _displaced(base, patch, field)}
    for key, value in patch.items():
        if key == _DIRECTIVE:
            continue
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value, key)
    return result


def _displaced(base: Mapping[str, Any], patch: Mapping[str, Any], field: str) -> set[str]:
    """Fields of ours that a field of the user's takes the place of."""
    exclusive = _HANDLERS if field in _PROBES else _ENV_VALUES if field == "env" else set[str]()
    if field == "volumes":
        exclusive = (set(base) | set(patch)) - {"name"}
    given = {key for key in patch if key in exclusive and patch[key] is not None}
    return (exclusive & set(base)) - given if given else set()


def _merged_lists(base: Sequence[Any], patch: Sequence[Any], field: str) -> list[Any]:
    if field in JOINED:
        return [*base, *(item for item in _without_directives(patch) if item not in base)]
    key = _key_of_items(field, [*base, *patch])
    if key is None:
        return [_without_directives(item) for item in patch]
    result = {_identity(item, key): item for item in base}
    for item in patch:
        name = _identity(item, key)
        if item.get(_DIRECTIVE) == "delete":
            result.pop(name, None)
        else:
            result[name] = merged(result[name], item, field) if name in result else _without_directives(item)
    return list(result.values())


def _key_of_items(field: str, items: Sequence[Any]) -> str | None:
    for key in ITEM_KEYS.get(field, ()):
        if all(isinstance(item, Mapping) and isinstance(item.get(key), str | int) for item in items):
            return key
    return None


def _identity(item: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    """The same port number may be there once per protocol."""
    return (item[key], item.get("protocol", "TCP")) if key in ("containerPort", "port") else (item[key],)


def _without_directives(value: Any) -> Any:
    """A value that had nothing to merge with, without what only told how to merge it."""
    if isinstance(value, Mapping):
        return {
            key: _without_directives(inner)
            for key, inner in value.items()
            if key != _DIRECTIVE and inner is not None
        }
    if isinstance(value, list | tuple):
        items = [
            item for item in value if not (isinstance(item, Mapping) and item.get(_DIRECTIVE) == "delete")
        ]
        return [_without_directives(item) for item in items]
    return value
