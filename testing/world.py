"""A World made by hand: what a reconciler sees when these objects exist."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.manifests.kinds import KUBE_NODE
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
from slurm_operator.manifests.storage import StorageUse
from slurm_operator.plan.world import Protection
from slurm_operator.runtime.world.sources import POD_INDEXES
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Snapshot, Unreachable


@dataclass
class HandmadeWorld:
    """Answers as the real one would, from lists."""

    things: list[Any] = field(default_factory=list)
    children_: dict[Kind, list[Child]] = field(default_factory=dict)
    named: dict[tuple[type, ObjectKey], Secret | ConfigMap | Child | Unread] = field(default_factory=dict)
    served: set[Kind] = field(default_factory=lambda: {KUBE_NODE, NodeSetPowerState.KIND})
    slurms: dict[ObjectKey, Snapshot | Unreachable] = field(default_factory=dict)
    job_ends: dict[int, tuple[EndedJob, ...] | Unread] = field(default_factory=dict)
    undecoded: list[tuple[type, ObjectKey]] = field(default_factory=list)
    protection: Protection = Protection.NOT_LOOKED
    storage_uses: dict[str, StorageUse] = field(default_factory=dict)  # By the uid of the pod.
    now: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def get(self, type_, namespace, name):
        return next((t for t in self.all(type_, namespace) if t.metadata.name == name), None)

    def all(self, type_, namespace=""):
        found = (t for t in self.things if type(t) is type_ and namespace in ("", t.metadata.namespace))
        return sorted(found, key=key_of)

    def unreadable(self, type_, namespace):
        return sorted(key.name for kind, key in self.undecoded if (kind, key.namespace) == (type_, namespace))

    def find(self, type_, index, value):
        by = POD_INDEXES[index]
        return [thing for thing in self.all(type_) if value in by(thing)]

    def child(self, kind, namespace, name):
        key = ObjectKey(namespace, name)
        return next((c for c in self.children_.get(kind, ()) if key_of(c) == key), None)

    def children(self, kind, owner_uid):
        owned = (
            (child, [owner.uid for owner in child.metadata.owner_references])
            for child in self.children_.get(kind, ())
        )
        return [child for child, uids in owned if owner_uid in (uids or [""])]

    def secret(self, namespace, name):
        return self.named.get((Secret, ObjectKey(namespace, name)))

    def config_map(self, namespace, name):
        return self.named.get((ConfigMap, ObjectKey(namespace, name)))

    def revision(self, namespace, name):
        return self.named.get((Child, ObjectKey(namespace, name)))

    def slurm(self, namespace, controller):
        nothing = Unreachable(since=datetime(2026, 1, 1, tzinfo=UTC), why="there is no RestApi")
        return self.slurms.get(ObjectKey(namespace, controller), nothing)

    def job_end(self, namespace, controller, job_id):
        return self.job_ends.get(job_id, ())

    def storage(self, pod_uid):
        return self.storage_uses.get(pod_uid)

    def serves(self, kind):
        return kind in self.served

    def with_secret(self, secret: Secret | Unread, key: ObjectKey) -> "HandmadeWorld":
        self.named[Secret, key] = secret
        return self
