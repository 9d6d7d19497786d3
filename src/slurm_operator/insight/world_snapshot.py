"""The World as a value: what a reconciler sees, taken once, kept, changed by hand and looked at again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
from slurm_operator.manifests.storage import StorageUse
from slurm_operator.plan.world import Protection
from slurm_operator.runtime.world.sources import POD_INDEXES, owner_uids
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

T = TypeVar("T", bound=HasMeta)

_NOBODY = "there is no RestApi for this Controller that is ready to be asked"
_NOT_ASKED = "nobody has asked for it yet"


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Picture:
    """A World in dictionaries. What is asked for by name and not in it is noted as missed.

    In a picture that `is_whole` there is nothing to miss: what is not in it does not exist.
    """

    now: datetime = field(default_factory=utc_now)
    records: dict[type, dict[ObjectKey, Any]] = field(default_factory=dict)
    parts: dict[Kind, dict[ObjectKey, Child]] = field(default_factory=dict)
    secrets: dict[ObjectKey, Secret | Unread | None] = field(default_factory=dict)
    config_maps: dict[ObjectKey, ConfigMap | Unread | None] = field(default_factory=dict)
    revisions: dict[ObjectKey, Child | Unread | None] = field(default_factory=dict)
    slurms: dict[ObjectKey, Snapshot | Unreachable] = field(default_factory=dict)
    served: set[Kind] = field(default_factory=set)
    undecoded: dict[type, set[ObjectKey]] = field(default_factory=dict)
    protection: Protection = Protection.NOT_LOOKED
    is_whole: bool = False
    taken_at: datetime | None = None  # When `now` has moved on since.
    missed_secrets: set[ObjectKey] = field(default_factory=set)
    missed_config_maps: set[ObjectKey] = field(default_factory=set)
    missed_revisions: set[ObjectKey] = field(default_factory=set)

    def get(self, type_: type[T], namespace: str, name: str) -> T | None:
        found: T | None = self.records.get(type_, {}).get(ObjectKey(namespace, name))
        return found

    def all(self, type_: type[T], namespace: str = "") -> Sequence[T]:
        things = self.records.get(type_, {}).values()
        return sorted((t for t in things if namespace in ("", t.metadata.namespace)), key=key_of)

    def unreadable(self, type_: type[T], namespace: str) -> Sequence[str]:
        return sorted(key.name for key in self.undecoded.get(type_, ()) if key.namespace == namespace)

    def find(self, type_: type[T], index: str, value: str) -> Sequence[T]:
        by = POD_INDEXES[index]
        return [thing for thing in self.all(type_) if value in by(thing)]

    def child(self, kind: Kind, namespace: str, name: str) -> Child | None:
        return self.parts.get(kind, {}).get(ObjectKey(namespace, name))

    def children(self, kind: Kind, owner_uid: str) -> Sequence[Child]:
        found = (child for child in self.parts.get(kind, {}).values() if _is_owned(child, owner_uid))
        return sorted(found, key=key_of)

    def secret(self, namespace: str, name: str) -> Secret | Unread | None:
        key = ObjectKey(namespace, name)
        if key not in self.secrets and not self.is_whole:
            self.missed_secrets.add(key)
            return Unread(why=_NOT_ASKED)
        return self.secrets.get(key)

    def config_map(self, namespace: str, name: str) -> ConfigMap | Unread | None:
        key = ObjectKey(namespace, name)
        if key not in self.config_maps and not self.is_whole:
            self.missed_config_maps.add(key)
            return Unread(why=_NOT_ASKED)
        return self.config_maps.get(key)

    def revision(self, namespace: str, name: str) -> Child | Unread | None:
        key = ObjectKey(namespace, name)
        if key not in self.revisions and not self.is_whole:
            self.missed_revisions.add(key)
            return Unread(why=_NOT_ASKED)
        return self.revisions.get(key)

    def slurm(self, namespace: str, controller: str) -> Snapshot | Unreachable:
        nothing = Unreachable(since=self.taken_at or self.now, why=_NOBODY)
        return self.slurms.get(ObjectKey(namespace, controller), nothing)

    def job_end(self, namespace: str, controller: str, job_id: int) -> Sequence[EndedJob] | Unread:
        return Unread(why=_NOT_ASKED)

    def storage(self, pod_uid: str) -> StorageUse | None:
        return None

    def serves(self, kind: Kind) -> bool:
        return kind in self.served

    # ---- Changing it

    def put(self, thing: HasMeta) -> None:
        """This record from now on, in the place of one with its name."""
        self.records.setdefault(type(thing), {})[key_of(thing)] = thing

    def put_child(self, kind: Kind, child: Child) -> None:
        self.parts.setdefault(kind, {})[key_of(child)] = child

    def drop(self, type_: type[HasMeta], key: ObjectKey) -> None:
        self.records.get(type_, {}).pop(key, None)

    def drop_child(self, kind: Kind, key: ObjectKey) -> None:
        self.parts.get(kind, {}).pop(key, None)

    def copy(self) -> "Picture":
        """The same, to be changed without changing this one. What is missed there is missed here too."""
        return Picture(
            now=self.now,
            records={type_: dict(things) for type_, things in self.records.items()},
            parts={kind: dict(children) for kind, children in self.parts.items()},
            secrets=dict(self.secrets),
            config_maps=dict(self.config_maps),
            revisions=dict(self.revisions),
            slurms=dict(self.slurms),
            served=set(self.served),
            undecoded=self.undecoded,
            protection=self.protection,
            is_whole=self.is_whole,
            taken_at=self.taken_at,
            missed_secrets=self.missed_secrets,
            missed_config_maps=self.missed_config_maps,
            missed_revisions=self.missed_revisions,
        )


def _is_owned(thing: HasMeta, uid: str) -> bool:
    return uid in owner_uids(thing)
