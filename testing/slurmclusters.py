"""What tests of SlurmClusters and their NodeSets share: manifests, and the world after plans were carried out."""

import copy
from datetime import UTC, datetime
from typing import Any

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius import NodeSet, SlurmCluster, names
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod, Secret
from slurm_operator.plan.actions import Apply, Create, DeleteObject, GenerateSecret, PatchObject
from slurm_operator.plan.plan import Plan, lane, plan
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.reconcilers.nebius import nodeset as nodeset_reconciler
from slurm_operator.reconcilers.nebius import slurmcluster as cluster_reconciler
from testing import children
from testing.nebius import accepted, changed
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OURS = "ghcr.io/slinkyproject/{daemon}:26.05-ubuntu26.04"
BY_KIND: dict[Any, type[Any]] = {one.kind: one.model for one in registry.ALL}
RECONCILERS: dict[type, Reconciler[Any]] = {
    SlurmCluster: cluster_reconciler.RECONCILER,
    NodeSet: nodeset_reconciler.RECONCILER,
}


def manifest(kind: str, name: str, **changes: Any) -> dict[str, Any]:
    """One of the accepted manifests, changed at dotted paths (`__` stands for a dot)."""
    found = copy.deepcopy(accepted()[f"{kind}/{name}"])
    found["metadata"].pop("annotations", None)
    return changed(found, {path.replace("__", "."): value for path, value in changes.items()})


def with_our_images(cluster: dict[str, Any]) -> dict[str, Any]:
    """The same cluster with the images that the operator would choose itself."""
    nodes = "spec.slurmNodes"
    return changed(
        cluster,
        {
            "spec.populateJail.image": OURS.format(daemon="slurmd"),
            f"{nodes}.controller.slurmctld.image": OURS.format(daemon="slurmctld"),
            f"{nodes}.login.sshd.image": OURS.format(daemon="login"),
        },
    )


def read(body: dict[str, Any], **meta: Any) -> Any:
    """The object as the operator sees it, in namespace `ns`."""
    type_ = BY_KIND[kinds.kind_of(body)]
    name = body["metadata"]["name"]
    metadata = {
        **body["metadata"], "namespace": "ns", "uid": f"uid-{name}", "generation": 1, "resourceVersion": "7", **meta
    }  # fmt: skip
    return codec.read(type_, {**body, "metadata": metadata})


def world(*bodies: dict[str, Any]) -> HandmadeWorld:
    return HandmadeWorld(things=[read(body) for body in bodies])


def decide(there: HandmadeWorld, type_: type, name: str) -> tuple[Any, Plan]:
    """What the reconciler of a kind sees and decides."""
    reconciler = RECONCILERS[type_]
    seen = reconciler.observe(ObjectKey("ns", name), there)
    assert seen is not None
    return seen, reconciler.decide(seen, NOW)


def report(there: HandmadeWorld, type_: type, name: str) -> dict[str, Any]:
    """Conditions by type as (status, reason, message), and the other fields of the status."""
    seen, decided = decide(there, type_, name)
    return children.report(RECONCILERS[type_], seen, decided)


def carried_out(there: HandmadeWorld, decided: Plan) -> HandmadeWorld:
    """The world after the API server took every write of the plan, and nobody held on to what was deleted."""
    for action in decided.actions():
        match action:
            case Apply(manifest=body) | Create(manifest=body) if kinds.kind_of(body) in BY_KIND:
                _put(there, body)
            case Apply(manifest=body) | Create(manifest=body):
                children.put(there, body)
            case GenerateSecret():
                children.carried_out(there, plan(lane("keys", [action])))
            case DeleteObject(kind=kind, key=key) if kind in BY_KIND:
                there.things = [
                    t for t in there.things if (type(t), t.metadata.name) != (BY_KIND[kind], key[1])
                ]
            case DeleteObject(kind=kind, key=key):
                there.children_[kind] = [c for c in there.children_[kind] if c.metadata.name != key[1]]
            case PatchObject(kind=kind, key=key) if kind == kinds.JOB:
                _annotated(there, key[1], action.operations)
            case PatchObject(kind=kind, key=key) if kind == kinds.SECRET:
                _noted(there, key, action.operations)
            case _:
                pass
    return there


def _noted(there: HandmadeWorld, key: ObjectKey, operations: tuple[dict[str, Any], ...]) -> None:
    found = there.secret(*key)
    assert isinstance(found, Secret)
    [notes] = [one["value"] for one in operations if one["path"] == "/metadata/annotations"]
    there.named[Secret, ObjectKey(*key)] = wire.replace(
        found, metadata=wire.replace(found.metadata, annotations=notes)
    )


def settled(there: HandmadeWorld, *names_: tuple[type, str], rounds: int = 3) -> HandmadeWorld:
    """After some passes of these objects' reconcilers."""
    for _ in range(rounds):
        for type_, name in names_:
            carried_out(there, decide(there, type_, name)[1])
    return there


def _put(there: HandmadeWorld, body: dict[str, Any]) -> None:
    type_, name = BY_KIND[kinds.kind_of(body)], body["metadata"]["name"]
    before = there.get(type_, "ns", name)
    status = codec.plain(before)["status"] if before is not None and hasattr(before, "status") else {}
    there.things = [t for t in there.things if t is not before]
    meta = {**body["metadata"], "uid": f"uid-of-{name}", "generation": 1, "resourceVersion": "1"}
    there.things.append(codec.read(type_, {**body, "metadata": meta, "status": status}))


def _annotated(there: HandmadeWorld, name: str, operations: tuple[dict[str, Any], ...]) -> None:
    job = there.child(kinds.JOB, "ns", name)
    assert job is not None
    for operation in operations:
        key = str(operation["path"]).removeprefix("/metadata/annotations/").replace("~1", "/")
        children.put(
            there,
            {
                **job.body,
                "metadata": {
                    **job.body["metadata"],
                    "annotations": {**job.metadata.annotations, key: operation["value"]},
                },
            },
        )


def with_job(
    there: HandmadeWorld, cluster: str, *, purpose: str = "populate", digest: str = "", **status: Any
) -> HandmadeWorld:
    """The Job that populates the root, in this state."""
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": names.populate_jail(cluster),
            "namespace": "ns",
            "annotations": {names.POPULATE_PURPOSE: purpose, names.POPULATE_DIGEST: digest},
        },
        "spec": {},
        "status": status,
    }
    children.put(there, body)
    return there


def populated(there: HandmadeWorld, cluster: str) -> HandmadeWorld:
    """The Job has succeeded."""
    job = there.child(kinds.JOB, "ns", names.populate_jail(cluster))
    assert job is not None, "there is no Job yet"
    job.body["status"] = {"succeeded": 1}
    return there


def pod(name: str, cluster: str, component: str, *, owner: str = "", **status: Any) -> Pod:
    labels = {
        "app.kubernetes.io/name": "slurmcluster",
        "app.kubernetes.io/instance": cluster,
        "app.kubernetes.io/component": component,
    }
    owners = (
        [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": names.populate_jail(cluster),
                "uid": owner,
                "controller": True,
            }
        ]
        if owner
        else []
    )
    meta = {"name": name, "namespace": "ns", "labels": labels, "ownerReferences": owners}
    return codec.read(Pod, {"metadata": meta, "status": status})


def job_pod(cluster: str, name: str = "populate-1", **container: Any) -> Pod:
    """The pod of the Job, with its container in this state."""
    phase = container.pop("phase", "Running")
    state = {"name": "populate-jail", "state": container}
    uid = f"uid-of-{names.populate_jail(cluster)}"
    return pod(name, cluster, "populate-jail", owner=uid, phase=phase, containerStatuses=[state])


def saying(
    there: HandmadeWorld, type_: type[Any], name: str, ready: str = "True", message: str = "", **status: Any
) -> HandmadeWorld:
    """A part that says this about itself."""
    part = codec.plain(there.get(type_, "ns", name))
    told = [
        {"type": "Ready", "status": ready, "reason": "Because", "message": message},
        {
            "type": "Degraded",
            "status": "True" if (trouble := status.pop("trouble", "")) else "False",
            "reason": "Trouble" if trouble else "AsExpected",
            "message": trouble,
        },
        {
            "type": "Progressing",
            "status": "True" if (progress := status.pop("progress", "")) else "False",
            "reason": "Draining" if progress else "UpToDate",
            "message": progress,
        },
    ]
    there.things = [t for t in there.things if (type(t), t.metadata.name) != (type_, name)]
    there.things.append(
        codec.read(type_, {**part, "status": {"observedGeneration": 1, "conditions": told, **status}})
    )
    return there
