"""What a pod finds in its volumes: files out of ConfigMaps and Secrets, as its kubelet brings them."""

from collections.abc import Iterator

from simulation.apiserver import ApiServer, Object
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds

Files = dict[str, str]  # By name; those of Secrets as base64.


def files(server: ApiServer, pod: Object) -> Files | str:
    """What the pod would see if it started now, or the name of what is not there."""
    found: Files = {}
    namespace = pod["metadata"]["namespace"]
    for kind, source in _sources(pod):
        name = source.get("name") or source.get("secretName", "")
        thing = server.objects[kind].get(ObjectKey(namespace, name))
        entries = {} if thing is None else {**(thing.get("data") or {}), **(thing.get("binaryData") or {})}
        items = source.get("items") or [{"key": key, "path": key} for key in entries]
        lacks = thing is None or any(item["key"] not in entries for item in items)
        if lacks and not source.get("optional"):
            return f"{kind.kind} {name}"
        found |= {item["path"]: entries[item["key"]] for item in items if item["key"] in entries}
    return found


def claims(pod: Object) -> list[str]:
    return [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["spec"].get("volumes") or ()
        if "persistentVolumeClaim" in volume
    ]


def unbound(server: ApiServer, pod: Object) -> str:
    """A claim that keeps the scheduler waiting; empty when there is none."""
    for name in claims(pod):
        claim = server.objects[kinds.PERSISTENT_VOLUME_CLAIM].get(
            ObjectKey(pod["metadata"]["namespace"], name)
        )
        if claim is None or (claim.get("status") or {}).get("phase") != "Bound":
            return name
    return ""


def state_of(server: ApiServer, pod: Object, volume: str) -> str:
    """Which disk is behind a volume: that of a claim, or one that comes and goes with the pod."""
    for found in pod["spec"].get("volumes") or ():
        if found["name"] == volume and "persistentVolumeClaim" in found:
            key = ObjectKey(pod["metadata"]["namespace"], found["persistentVolumeClaim"]["claimName"])
            claim = server.objects[kinds.PERSISTENT_VOLUME_CLAIM].get(key)
            return claim["metadata"]["uid"] if claim is not None else ""
    return pod["metadata"]["uid"]


def _sources(pod: Object) -> Iterator[tuple[kinds.Kind, Object]]:
    for volume in pod["spec"].get("volumes") or ():
        parts = (volume.get("projected") or {}).get("sources") or [volume]
        for part in parts:
            if "configMap" in part:
                yield kinds.CONFIG_MAP, part["configMap"]
            if "secret" in part:
                yield kinds.SECRET, part["secret"]
    for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
        for variable in container.get("env") or ():
            ref = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if ref is not None:
                yield kinds.SECRET, {"name": ref["name"], "items": [{"key": ref["key"], "path": f"env {variable['name']}"}]}  # fmt: skip
