"""Everything we know, in memory: the watch caches, the referenced objects, and a view of them per pass."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.clock import Clock, PassClock, SystemClock
from slurm_operator.kube.client import Client
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.kube.watch.named_objects import NamedObjects, config_maps, revisions, secrets
from slurm_operator.manifests import kinds
from slurm_operator.manifests.labels import matches as labels_match
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
from slurm_operator.manifests.storage import StorageUse
from slurm_operator.plan.belonging import Scope, group_of
from slurm_operator.plan.world import Protection
from slurm_operator.runtime.world.sources import OWNER, Sources, child_indexes
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurmsync.connections import SlurmClusters

T = TypeVar("T", bound=HasMeta)

Pass = tuple[str, ObjectKey]  # A reconciler's name and the key it looks at.


class Claimed(Protocol):
    """Which objects no other installation acts on."""

    def covers(self, kind: Kind, thing: HasMeta) -> bool: ...


class Caches:
    """The caches of one operator. Reads never wait; `run` keeps them up to date."""

    def __init__(
        self,
        client: Client,
        sources: Sources,
        namespaces: Sequence[str],
        slurms: SlurmClusters,
        clock: Clock | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.slurms = slurms
        self.scope = scope or Scope(frozenset(source.kind.group for source in sources.records))
        self.clock: Clock = clock or SystemClock()
        self.records: dict[type, Cache[Any]] = {
            source.type: Cache(
                client,
                source.kind,
                source.decode,
                namespaces=namespaces if source.kind.namespaced else ("",),
                label_selector=source.label_selector,
                field_selector=source.field_selector,
                indexes=source.indexes,
            )
            for source in sources.records
        }
        self.children: dict[Kind, Cache[Child]] = {
            kind: Cache(
                client,
                kind,
                sources.child_source(kind).decode,
                namespaces=namespaces,
                label_selector=sources.child_source(kind).label_selector,
                indexes=child_indexes(),
            )
            for kind in sources.children
        }
        self.secrets: NamedObjects[Secret] = secrets(client, self.clock.steady)
        self.config_maps: NamedObjects[ConfigMap] = config_maps(client)
        self.revisions: NamedObjects[Child] = revisions(client)
        self.protection = Protection.NOT_LOOKED
        self.storage: dict[str, StorageUse] = {}  # By the uid of the pod, dated by the steady clock.
        self.claims: Claimed | None = None  # Without, whatever the scope covers is ours.
        self.optional = {source.kind for source in sources.records if source.is_optional}
        self.optional.update(sources.optional_children)
        self._wanted: dict[Pass, frozenset[ObjectKey]] = {}
        self._wanted_by: dict[ObjectKey, set[Pass]] = {}
        self._by_kind: dict[Kind, list[tuple[str, Cache[Any]]]] = {}
        for source in sources.records:
            self._by_kind.setdefault(source.kind, []).append(
                (source.label_selector, self.records[source.type])
            )
        for kind, cache in self.children.items():
            self._by_kind.setdefault(kind, []).append((sources.child_source(kind).label_selector, cache))

    @property
    def caches(self) -> list[tuple[Kind, Cache[Any]]]:
        return [(kind, cache) for kind, caches in self._by_kind.items() for _, cache in caches]

    def live(self, kind: Kind, key: ObjectKey) -> HasMeta | None:
        """The object as some watch last showed it; None where there is none, or nobody looks."""
        for _, cache in self._by_kind.get(kind, ()):
            found: HasMeta | None = cache.get(key)
            if found is not None:
                return found
        return self.secrets.get(key) if kind == kinds.SECRET and self.secrets.knows(key) else None

    def is_filled(self, kind: Kind) -> bool:
        """Whether everything there is of this kind has been read."""
        caches = self._by_kind.get(kind)
        return bool(caches) and all(cache.synced.is_set() for _, cache in caches or ())

    def note_written(self, kind: Kind, manifest: Manifest) -> list[Cache[Any]]:
        """Show the answer to our write to the next pass. Gives the caches whose watch will show it too."""
        return self.note_answer(kind, wire.encode(manifest), manifest["metadata"].get("labels", {}))

    def note_answer(self, kind: Kind, body: bytes, labels: Mapping[str, str]) -> list[Cache[Any]]:
        """The same for an answer that nobody has decoded yet."""
        if kind == kinds.SECRET:
            self.secrets.note_answer(body)
        elif kind == kinds.CONFIG_MAP:
            self.config_maps.note_answer(body)
        elif kind == kinds.CONTROLLER_REVISION:
            self.revisions.note_answer(body)
        showing = [cache for selector, cache in self._by_kind.get(kind, ()) if labels_match(selector, labels)]
        for cache in showing:
            cache.note_answer(body)
        return showing

    def note_deleted(self, kind: Kind, key: ObjectKey, uid: str) -> None:
        for _, cache in self._by_kind.get(kind, ()):
            cache.note_deleted(key, uid)

    def is_ours(self, kind: Kind, thing: HasMeta, on_behalf_of: str = "") -> bool:
        """Whether it is acted on: its API, or the one named, is on, and nobody else acts on it."""
        if not self.scope.covers_group(on_behalf_of or group_of(kind, thing.metadata)):
            return False
        return self.claims is None or self.claims.covers(kind, thing)

    def view(self) -> "CacheView":
        return CacheView(self)

    def want(self, owner: Pass, view: "CacheView") -> None:
        """Watch exactly what this pass asked for by name, and no longer what the last one did."""
        asked = view.secrets_asked | view.config_maps_asked | view.revisions_asked
        if not asked and owner not in self._wanted:
            return
        self._remember(owner, asked)
        self.secrets.want(owner, view.secrets_asked)
        self.config_maps.want(owner, view.config_maps_asked)
        self.revisions.want(owner, view.revisions_asked)

    def forget(self, owner: Pass) -> None:
        self.want(owner, CacheView(self))

    def referrers(self, key: ObjectKey) -> Sequence[Pass]:
        """Whose last pass asked for the Secret, ConfigMap or revision of this name."""
        return sorted(self._wanted_by.get(key, ()))

    def _remember(self, owner: Pass, asked: set[ObjectKey]) -> None:
        for key in self._wanted.pop(owner, frozenset()) - asked:
            self._wanted_by[key].discard(owner)
            if not self._wanted_by[key]:
                del self._wanted_by[key]
        for key in asked:
            self._wanted_by.setdefault(key, set()).add(owner)
        if asked:
            self._wanted[owner] = frozenset(asked)


class CacheView:
    """The World of one pass. Remembers what was asked for by name, so that it can be watched."""

    def __init__(self, known: Caches) -> None:
        self._known = known
        self.clock = PassClock(known.clock)
        self.now = self.clock.now()
        self.protection = known.protection
        self.secrets_asked: set[ObjectKey] = set()
        self.config_maps_asked: set[ObjectKey] = set()
        self.revisions_asked: set[ObjectKey] = set()
        self.slurms_asked: set[ObjectKey] = set()

    def get(self, type_: type[T], namespace: str, name: str) -> T | None:
        found: T | None = self._known.records[type_].get(ObjectKey(namespace, name))
        return found

    def all(self, type_: type[T], namespace: str = "") -> Sequence[T]:
        things = self._known.records[type_].values()
        return sorted((t for t in things if namespace in ("", t.metadata.namespace)), key=key_of)

    def unreadable(self, type_: type[T], namespace: str) -> Sequence[str]:
        keys = self._known.records[type_].unreadable
        return sorted(key.name for key in keys if key.namespace == namespace)

    def find(self, type_: type[T], index: str, value: str) -> Sequence[T]:
        return self._known.records[type_].by_index(index, value)

    def child(self, kind: Kind, namespace: str, name: str) -> Child | None:
        return self._known.children[kind].get(ObjectKey(namespace, name))

    def children(self, kind: Kind, owner_uid: str) -> Sequence[Child]:
        return self._known.children[kind].by_index(OWNER, owner_uid)

    def secret(self, namespace: str, name: str) -> Secret | Unread | None:
        key = ObjectKey(namespace, name)
        found = self._referenced(self._known.secrets, self.secrets_asked, key)
        since = self._known.secrets.known_since(key)
        if not isinstance(found, Secret) or since is None:
            return found
        return wire.replace(found, known_since=self.clock.moment(since))

    def config_map(self, namespace: str, name: str) -> ConfigMap | Unread | None:
        return self._referenced(self._known.config_maps, self.config_maps_asked, ObjectKey(namespace, name))

    def revision(self, namespace: str, name: str) -> Child | Unread | None:
        return self._referenced(self._known.revisions, self.revisions_asked, ObjectKey(namespace, name))

    def slurm(self, namespace: str, controller: str) -> Snapshot | Unreachable:
        key = ObjectKey(namespace, controller)
        self.slurms_asked.add(key)
        return self.clock.dated(self._known.slurms.latest(key))

    def job_end(self, namespace: str, controller: str, job_id: int) -> Sequence[EndedJob] | Unread:
        return self._known.slurms.job_end(ObjectKey(namespace, controller), job_id)

    def storage(self, pod_uid: str) -> StorageUse | None:
        found = self._known.storage.get(pod_uid)
        return None if found is None else wire.replace(found, read_at=self.clock.moment(found.read_at))

    def serves(self, kind: Kind) -> bool:
        return self._known.is_filled(kind)

    def awaited_seconds(self) -> float:
        """For how long the first answer of a Slurm cluster that was looked at may still be waited for."""
        return max(map(self._known.slurms.awaited_seconds, self.slurms_asked), default=0.0)

    def unread(self) -> list[ObjectKey]:
        """What was asked for by name and has not been answered yet."""
        return [key for _, key in self._unanswered()]

    def is_refused(self) -> bool:
        """Whether the server has said why something that was asked for by name cannot be read."""
        return any(referenced.trouble(key) is not None for referenced, key in self._unanswered())

    def _unanswered(self) -> Iterator[tuple[NamedObjects[Any], ObjectKey]]:
        known = self._known
        asked: tuple[tuple[NamedObjects[Any], set[ObjectKey]], ...] = (
            (known.secrets, self.secrets_asked),
            (known.config_maps, self.config_maps_asked),
            (known.revisions, self.revisions_asked),
        )
        for referenced, keys in asked:
            yield from ((referenced, key) for key in sorted(keys) if not referenced.knows(key))

    def _referenced(
        self, referenced: NamedObjects[T], asked: set[ObjectKey], key: ObjectKey
    ) -> T | Unread | None:
        asked.add(key)
        if referenced.knows(key):
            return referenced.get(key)
        return Unread(why=str(referenced.trouble(key) or "the API server has not answered yet"))
