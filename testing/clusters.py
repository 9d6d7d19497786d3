"""What tests of Clusters share: one made by hand, and the world after its plan was carried out."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from slurm_operator.api import KINDS
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.manifests import kinds
from slurm_operator.manifests.platform import StorageClass
from slurm_operator.plan.actions import Apply, Create, DeleteObject, PatchObject
from slurm_operator.plan.plan import Plan
from slurm_operator.reconcilers.cluster import RECONCILER
from slurm_operator.reconcilers.cluster.observe import Seen
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import JobState, NodeState
from testing.children import put, read
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = ObjectKey("ns", "demo")
T = TypeVar("T")

BY_KIND: dict[Any, type[Any]] = {kind.KIND: kind for kind in KINDS}


def cluster(
    spec: dict[str, Any] | None = None,
    *,
    status: dict[str, Any] | None = None,
    name: str = "demo",
    **meta: Any,
) -> Cluster:
    whole = {
        "metadata": {"name": name, "namespace": "ns", "uid": "uid-1", "generation": 1, "resourceVersion": "7", **meta},
        "spec": {"nodeSets": [{"name": "cpu", "replicas": 2}]} if spec is None else spec,
        "status": status or {},
    }  # fmt: skip
    return codec.read(Cluster, whole)


def storage_class(*, default: bool = True) -> StorageClass:
    note = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return codec.read(StorageClass, {"metadata": {"name": "disk", "annotations": note}})


def world(made: Cluster, *more: Any, storage: bool | None = True) -> HandmadeWorld:
    """A Kubernetes with, or without, a default StorageClass; None: nobody may look."""
    there = HandmadeWorld(things=[made, *more])
    if storage is not None:
        there.served.add(kinds.STORAGE_CLASS)
    if storage:
        there.things.append(storage_class())
    return there


def decide(there: HandmadeWorld, key: ObjectKey = KEY) -> tuple[Seen, Plan]:
    seen = RECONCILER.observe(key, there)
    assert seen is not None
    return seen, RECONCILER.decide(seen, NOW)


def changed(there: HandmadeWorld, made: Cluster) -> HandmadeWorld:
    """The same world with another spec."""
    there.things = [thing for thing in there.things if type(thing) is not Cluster] + [made]
    return there


def carried_out(there: HandmadeWorld, plan: Plan) -> HandmadeWorld:
    """The world after the API server took every write of the plan, and nobody held on to what was deleted."""
    for action in plan.actions():
        match action:
            case Apply(manifest=manifest) | Create(manifest=manifest):
                _put(there, manifest)
            case DeleteObject(kind=kind, key=key):
                there.things = [
                    t for t in there.things if (type(t), t.metadata.name) != (BY_KIND.get(kind), key[1])
                ]
            case PatchObject(kind=kind, key=key) if kind in BY_KIND and kind != Cluster.KIND:
                _patched(there, BY_KIND[kind], key[1], action.operations)
    return there


def settled(there: HandmadeWorld) -> HandmadeWorld:
    """After the first pass."""
    return carried_out(there, decide(there)[1])


def edited(there: HandmadeWorld, kind: type[Any], name: str, **spec: Any) -> HandmadeWorld:
    """Somebody changed fields of one part."""
    part = there.get(kind, "ns", name)
    _replace(there, kind, name, {**codec.plain(part), "spec": {**codec.plain(part)["spec"], **spec}})
    return there


def saying(
    there: HandmadeWorld, kind: type[Any], name: str, ready: str, reason: str = "", message: str = "",
    degraded: str = "False", **status: Any,
) -> HandmadeWorld:  # fmt: skip
    """A part that says this about itself."""
    conditions = [
        {"type": "Ready", "status": ready, "reason": reason or "Because", "message": message},
        {"type": "Degraded", "status": degraded, "reason": reason or "Because", "message": message},
        {"type": "Progressing", "status": "False", "reason": "UpToDate", "message": status.pop("progress", "")},
    ]  # fmt: skip
    part = there.get(kind, "ns", name)
    assert part is not None, f"{kind.__name__} {name}"
    told = {"observedGeneration": 1, "conditions": conditions, **status}
    _replace(there, kind, name, {**codec.plain(part), "status": told})
    return there


def leaving(there: HandmadeWorld, kind: type[Any], name: str) -> HandmadeWorld:
    """A part that is deleted, and held on to by its own finalizer."""
    part = codec.plain(there.get(kind, "ns", name))
    part["metadata"]["deletionTimestamp"] = "2026-01-01T11:00:00Z"
    _replace(there, kind, name, part)
    return there


def slurm(*, nodes: dict[str, str] | None = None, jobs: dict[int, str] | None = None,
          partitions: dict[str, str] | None = None, in_partition: str = "all") -> Snapshot:  # fmt: skip
    """What slurmctld says: nodes and jobs by their state, `IDLE+DRAIN`."""
    return Snapshot(
        nodes={
            n: SlurmNode(name=n, state=NodeState.of(*words.split("+"))) for n, words in (nodes or {}).items()
        },
        jobs={
            n: SlurmJob(job_id=n, state=JobState.of(*words.split("+")), partition=in_partition)
            for n, words in (jobs or {}).items()
        },
        partitions={
            n: Partition(name=n, state=frozenset({state})) for n, state in (partitions or {}).items()
        },
        nodes_asked_at=NOW,
        jobs_asked_at=NOW,
        release="26.05.5",
        cluster="physics",
    )


def _put(there: HandmadeWorld, manifest: dict[str, Any]) -> None:
    kind = kinds.kind_of(manifest)
    if kind not in BY_KIND:
        put(there, manifest)
        return
    name = manifest["metadata"]["name"]
    before = there.get(BY_KIND[kind], "ns", name)
    old = codec.plain(before) if before is not None else {"metadata": {}, "spec": {}}
    kept = {"replicas": old["spec"]["replicas"]} if kind.kind == "NodeSet" and before is not None else {}
    whole = {**old, **manifest, "spec": {**kept, **manifest["spec"]}}
    whole["metadata"] = {
        **manifest["metadata"],
        "uid": f"uid-of-{name}",
        "generation": 1,
        "resourceVersion": "1",
    }
    _replace(there, BY_KIND[kind], name, whole)


def _patched(
    there: HandmadeWorld, kind: type[Any], name: str, operations: Sequence[Mapping[str, Any]]
) -> None:
    part = codec.plain(there.get(kind, "ns", name))
    for operation in operations:
        field = str(operation["path"]).removeprefix("/spec/")
        part["spec"].pop(field, None)
        if operation["op"] == "add":
            part["spec"][field] = operation["value"]
    _replace(there, kind, name, part)


def _replace(there: HandmadeWorld, kind: type[Any], name: str, whole: dict[str, Any]) -> None:
    others = [t for t in there.things if (type(t), t.metadata.name) != (kind, name)]
    there.things = [*others, codec.read(kind, whole)]


def stranger(kind: type[T], name: str, spec: dict[str, Any] | None = None) -> T:
    """An object that no Cluster made."""
    return read(kind, spec or {}, name=name, uid="uid-else")
