"""Everything in a picture that people would see change, in one table."""

from typing import NamedTuple

from slurm_operator.api import registry
from slurm_operator.api.nebius.names import TOPOLOGY_WRITTEN
from slurm_operator.api.registry import Registry
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.meta import HasMeta
from slurm_operator.insight.forecast.kubernetes import NEW
from slurm_operator.insight.forecast.patches import bare
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST, INPUT_DIGEST, TEMPLATE_DIGEST
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Pod, Secret
from slurm_operator.manifests.secrets import CONTENT_DIGEST
from slurm_operator.reconcilers.controller.annotations import WRITTEN_AT
from slurm_operator.slurm.snapshot import Snapshot

SLURM_NODE = "SlurmNode"

# Notes of the operator to itself; what they are about shows elsewhere.
_NOTES = {APPLIED_DIGEST, INPUT_DIGEST, TEMPLATE_DIGEST, CONTENT_DIGEST, WRITTEN_AT, TOPOLOGY_WRITTEN}


class Known(NamedTuple):
    kind: str
    namespace: str
    name: str


class Thing(NamedTuple):
    """What it is, by uid, and what it says. `set_name` is the workload of a pod without a name of its own."""

    uid: str
    body: Manifest
    set_name: str = ""


def is_new(uid: str) -> bool:
    """It does not exist yet."""
    return uid.startswith(NEW)


def objects(picture: Picture, ours: Registry = registry.ALL) -> dict[Known, Thing]:
    found: dict[Known, Thing] = {}
    for one in ours:
        for thing in picture.all(one.model):
            body = {"spec": codec.plain(thing)["spec"], **_marks(thing)}
            found[_known(one.name, thing)] = Thing(thing.metadata.uid, bare(body))
    for kind, children in picture.parts.items():
        for child in children.values():
            body = {key: value for key, value in child.body.items() if key not in _LEFT_OUT}
            found[_known(kind.kind, child)] = Thing(child.metadata.uid, {**bare(body), **_marks(child)})
    for pod in picture.all(Pod):
        if not pod.has_ended:
            found[_known("Pod", pod)] = Thing(pod.metadata.uid, {}, _set_name(pod))
    for secret in picture.secrets.values():
        if isinstance(secret, Secret):
            body = {"data": dict.fromkeys(secret.digests, "(secret)")}
            found[_known("Secret", secret)] = Thing(secret.metadata.uid, body)
    return found | _slurm_nodes(picture)


_LEFT_OUT = {"metadata", "status", "apiVersion", "kind"}


def _slurm_nodes(picture: Picture) -> dict[Known, Thing]:
    return {
        Known(SLURM_NODE, key.namespace, name): Thing(name, {})
        for key, snapshot in picture.slurms.items()
        if isinstance(snapshot, Snapshot)
        for name in snapshot.nodes
    }


def _marks(thing: HasMeta) -> Manifest:
    """Labels and annotations that somebody chose."""
    notes = {key: value for key, value in thing.metadata.annotations.items() if key not in _NOTES}
    notes.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    chosen = {"labels": dict(thing.metadata.labels), "annotations": notes}
    deleted = {"deletion": "asked for"} if thing.metadata.is_terminating else {}
    return {"metadata": {**{key: value for key, value in chosen.items() if value}, **deleted}}


def _known(kind: str, thing: HasMeta) -> Known:
    return Known(kind, thing.metadata.namespace, thing.metadata.name)


def _set_name(pod: Pod) -> str:
    owner = pod.metadata.owner
    if owner is None or not owner.is_a(kinds.REPLICA_SET):
        return ""
    labels = pod.metadata.labels
    return "/".join(belonging.part(labels))
