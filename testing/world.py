"""A World made by hand: what a reconciler sees when these objects exist."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.manifests.kinds import KUBE_NODE
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
from slurm_operator.manifests.storage import StorageUse
from slurm_operator.plan.world import Protection, T
from slurm_operator.runtime.world.sources import POD_INDEXES
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

N = TypeVar("N", Secret, ConfigMap, Child)


class WorldOfThings:
    """A World's answers to what is asked by type, kind and name, for whoever can list what there is."""

    slurms: dict[ObjectKey, Snapshot | Unreachable]
    alone_since = datetime(2026, 1, 1, tzinfo=UTC)  # Where nothing is known of Slurm.

    def of_type(self, type_: type[T]) -> Iterable[T]:
        raise NotImplementedError

    def of_kind(self, kind: Kind) -> Iterable[Child]:
        raise NotImplementedError

    def get(self, type_: type[T], namespace: str, name: str) -> T | None:
        return next((t for t in self.all(type_, namespace) if t.metadata.name == name), None)

    def all(self, type_: type[T], namespace: str = "") -> Sequence[T]:
        found = (thing for thing in self.of_type(type_) if namespace in ("", thing.metadata.namespace))
        return sorted(found, key=key_of)

    def find(self, type_: type[T], index: str, value: str) -> Sequence[T]:
        by = POD_INDEXES[index]
        return [thing for thing in self.all(type_) if value in by(thing)]

    def child(self, kind: Kind, namespace: str, name: str) -> Child | None:
        key = ObjectKey(namespace, name)
        return next((child for child in self.of_kind(kind) if key_of(child) == key), None)

    def slurm(self, namespace: str, controller: str) -> Snapshot | Unreachable:
        nothing = Unreachable(since=self.alone_since, why="there is no RestApi")
        return self.slurms.get(ObjectKey(namespace, controller), nothing)


@dataclass
class HandmadeWorld(WorldOfThings):
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

    def of_type(self, type_: type[T]) -> Iterable[T]:
        return [thing for thing in self.things if type(thing) is type_]

    def of_kind(self, kind: Kind) -> Iterable[Child]:
        return self.children_.get(kind, ())

    def unreadable(self, type_: type[T], namespace: str) -> Sequence[str]:
        return sorted(key.name for kind, key in self.undecoded if (kind, key.namespace) == (type_, namespace))

    def children(self, kind: Kind, owner_uid: str) -> Sequence[Child]:
        owned = (
            (child, [owner.uid for owner in child.metadata.owner_references])
            for child in self.children_.get(kind, ())
        )
        return [child for child, uids in owned if owner_uid in (uids or [""])]

    def secret(self, namespace: str, name: str) -> Secret | Unread | None:
        return self._named(Secret, namespace, name)

    def config_map(self, namespace: str, name: str) -> ConfigMap | Unread | None:
        return self._named(ConfigMap, namespace, name)

    def revision(self, namespace: str, name: str) -> Child | Unread | None:
        return self._named(Child, namespace, name)

    def _named(self, type_: type[N], namespace: str, name: str) -> N | Unread | None:
        found = self.named.get((type_, ObjectKey(namespace, name)))
        assert found is None or isinstance(found, type_ | Unread)
        return found

    def job_end(self, namespace: str, controller: str, job_id: int) -> Sequence[EndedJob] | Unread:
        return self.job_ends.get(job_id, ())

    def storage(self, pod_uid: str) -> StorageUse | None:
        return self.storage_uses.get(pod_uid)

    def serves(self, kind: Kind) -> bool:
        return kind in self.served

    def with_secret(self, secret: Secret | Unread, key: ObjectKey) -> "HandmadeWorld":
        self.named[Secret, key] = secret
        return self
