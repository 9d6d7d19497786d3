"""What tests of reconcilers with children share: facts by hand, and the world after a plan was carried out."""

from typing import Any, TypeVar

from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import ConfigMap, Pod, Secret
from slurm_operator.manifests.secrets import CONTENT_DIGEST, content_digest
from slurm_operator.plan.actions import Apply, GenerateSecret
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import Reconciler
from testing.world import HandmadeWorld

T = TypeVar("T")
Seen = TypeVar("Seen")


def read(
    cls: type[T], spec: dict[str, Any], *, name: str = "slurm", uid: str = "uid-1", **metadata: Any
) -> T:
    """One of our objects in namespace `ns`."""
    meta = {"name": name, "namespace": "ns", "uid": uid, "generation": 1, "resourceVersion": "7", **metadata}
    return codec.read(cls, {"metadata": meta, "spec": spec})


def secret(name: str, **digests: str) -> Secret:
    """A Secret with entries; `_` in an entry's name stands for a dot."""
    entries = {
        entry.replace("_key", ".key").replace("_conf", ".conf"): value for entry, value in digests.items()
    }
    return Secret(metadata=Meta(name=name, namespace="ns"), digests=entries)


def with_secrets(world: HandmadeWorld, *secrets: Secret) -> HandmadeWorld:
    for one in secrets:
        world.named[Secret, ObjectKey("ns", one.metadata.name)] = one
    return world


def with_config(world: HandmadeWorld, name: str, **files: str) -> HandmadeWorld:
    data = {entry.replace("_", "."): text for entry, text in files.items()}
    found = ConfigMap(metadata=Meta(name=name, namespace="ns"), data=data)
    world.named[ConfigMap, ObjectKey("ns", name)] = found
    return world


def carried_out(world: HandmadeWorld, plan: Plan) -> HandmadeWorld:
    """The world after the API server took every write of the plan."""
    for action in plan.actions():
        if isinstance(action, Apply):
            put(world, action.manifest)
        elif isinstance(action, GenerateSecret):
            meta = action.manifest["metadata"]
            entries = [action.entry] if action.entry else [
                f"ssh_host_{kind}_key{end}" for kind in ("rsa", "ed25519", "ecdsa") for end in ("", ".pub")
            ]  # fmt: skip
            digests = {entry: f"made-{entry}" for entry in entries}
            world.named[Secret, ObjectKey("ns", meta["name"])] = Secret(metadata=_meta(meta), digests=digests)
    return world


def put(world: HandmadeWorld, manifest: Manifest) -> None:
    """The object as it is after this was applied."""
    meta, kind = manifest["metadata"], kinds.kind_of(manifest)
    if kind == kinds.SECRET:
        digests = {entry: digest(text) for entry, text in manifest["stringData"].items()}
        noted = {**meta["annotations"], CONTENT_DIGEST: content_digest(digests, digests)}
        found = Secret(metadata=_meta({**meta, "annotations": noted}), digests=digests)
        world.named[Secret, ObjectKey("ns", meta["name"])] = found
        return
    if kind == kinds.CONFIG_MAP:
        world.named[ConfigMap, ObjectKey("ns", meta["name"])] = ConfigMap(
            metadata=_meta(meta), data=manifest["data"]
        )
    there = world.children_.get(kind, [])
    others = [child for child in there if child.metadata.name != meta["name"]]
    before = max((child.metadata.generation for child in there if child not in others), default=0)
    world.children_[kind] = [*others, Child(metadata=_meta(meta, before + 1), body=dict(manifest))]


def running(
    world: HandmadeWorld, kind: kinds.Kind, name: str, *, ready: int = 1, **status: Any
) -> HandmadeWorld:
    """The same, with so many pods of a workload ready."""
    child = world.child(kind, "ns", name)
    assert child is not None
    counts = {"replicas": ready, "readyReplicas": ready, "availableReplicas": ready, "updatedReplicas": ready}
    child.body["status"] = {"observedGeneration": child.metadata.generation, **counts, **status}
    return world


def pod(name: str, app: str, instance: str, **status: Any) -> Pod:
    labels = {"app.kubernetes.io/name": app, "app.kubernetes.io/instance": instance}
    return codec.read(
        Pod, {"metadata": {"name": name, "namespace": "ns", "labels": labels}, "status": status}
    )


def report(
    reconciler: Reconciler[Seen], seen: Seen, plan: Plan, outcome: Outcome | None = None
) -> dict[str, Any]:
    """Conditions by type as (status, reason, message), and the other fields."""
    told = reconciler.status(seen, plan, outcome or Outcome(done=tuple(plan.actions())))
    found = {c.type: (str(c.status), c.reason, c.message) for c in told.conditions}
    return {**found, **told.fields}


def _meta(metadata: Manifest, generation: int = 1) -> Meta:
    known = ("name", "namespace", "labels", "annotations", "ownerReferences", "creationTimestamp")
    given = {key: metadata[key] for key in known if key in metadata}
    return codec.read(Meta, {**given, "uid": f"uid-of-{metadata['name']}", "generation": generation})
