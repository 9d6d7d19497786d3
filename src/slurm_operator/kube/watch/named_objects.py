"""Secrets, ConfigMaps and revisions that others name: only those, never all of a cluster."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from datetime import datetime
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import structlog

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta, Meta, ObjectKey, key_of
from slurm_operator.kube import errors
from slurm_operator.kube.client import Client, Decode
from slurm_operator.kube.request import Selection
from slurm_operator.kube.secret_values import decode_secret
from slurm_operator.kube.secret_values import read_secret as read_secret
from slurm_operator.kube.secret_values import value_digest as value_digest
from slurm_operator.kube.watch.listeners import CallbackListener
from slurm_operator.kube.watch.read_queue import ReadQueue
from slurm_operator.kube.watch.reflector import Reflector
from slurm_operator.kube.watch.resource_versions import is_older
from slurm_operator.kube.watch.watched_scopes import Scope, scope_of, watched_scopes
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Manifest, decode_child
from slurm_operator.manifests.objects import ConfigMap, Secret

T = TypeVar("T", bound=HasMeta)

Steady = Callable[[], datetime]  # A clock that nobody can set.

log = structlog.get_logger(__name__)


class _Slip(wire.Record):
    """An object without its content, as a metadata-only watch tells it."""

    metadata: Meta


_decode_slip = wire.decoder(_Slip)


class _Known(NamedTuple, Generic[T]):
    """An object, or None for its absence, the version at which that was so, and when we learnt of it."""

    thing: T | None
    version: str
    since: datetime | None


class NamedObjects(Generic[T]):
    """The named objects of one kind, for as long as somebody wants them.

    A handful in a namespace are watched one by one. Beyond that one watch tells which names change, without
    content, and those that are wanted are read by name. With a clock they are known since a moment.
    """

    def __init__(self, client: Client, kind: Kind, decode: Decode[T], steady: Steady | None = None) -> None:
        self._client = client
        self._kind = kind
        self._decode = decode
        self._steady = steady
        self._by_owner: dict[Hashable, frozenset[ObjectKey]] = {}
        self._interest: Counter[ObjectKey] = Counter()
        self._known: dict[ObjectKey, _Known[T]] = {}
        self._written: set[ObjectKey] = set()  # By us, since their scope was last listed.
        self._callbacks: list[Callable[[ObjectKey, T | None], None]] = []
        self._reflectors: dict[Scope, Reflector[T] | Reflector[_Slip]] = {}
        self._tasks: dict[Scope, asyncio.Task[None]] = {}
        self._refused: set[Scope] = set()
        self._rearrange = asyncio.Event()
        self._reads = ReadQueue(self._read)

    def want(self, owner: Hashable, keys: Iterable[ObjectKey]) -> None:
        """From now on `owner` is interested in exactly these; nothing is kept that nobody wants."""
        new, old = frozenset(keys), self._by_owner.pop(owner, frozenset())
        if new:
            self._by_owner[owner] = new
        self._interest.update(new - old)
        self._interest.subtract(old - new)
        for key in old - new:
            if not self._interest[key]:
                self._drop(key)
        for key in sorted(new - old - self._known.keys()):
            if scope_of(key, self._reflectors.keys()) not in (None, key):
                self._reads.soon(key)  # A wide watch is running, and tells only what changes.
        if new != old:
            self._rearrange.set()

    def get(self, key: ObjectKey) -> T | None:
        """The object, None when it is absent or not known yet: ask `knows`."""
        known = self._known.get(key)
        return known.thing if known is not None else None

    def knows(self, key: ObjectKey) -> bool:
        """Whether `get` is the server's answer, rather than our not having asked yet."""
        return key in self._known

    def known_since(self, key: ObjectKey) -> datetime | None:
        """When we learnt of the content that `get` gives, by the steady clock."""
        known = self._known.get(key)
        return known.since if known is not None else None

    def trouble(self, key: ObjectKey) -> errors.KubeError | None:
        """Why the object cannot be watched right now, or None."""
        scope = scope_of(key, self._reflectors.keys())
        return self._reflectors[scope].trouble if scope is not None else None

    @property
    def connections(self) -> int:
        """How many watches this takes."""
        return len(self._reflectors)

    def subscribe(self, callback: Callable[[ObjectKey, T | None], None]) -> None:
        """Call back when a wanted object becomes known, changes or goes (None)."""
        self._callbacks.append(callback)

    def note_written(self, manifest: Manifest) -> None:
        """What the server answered to our own write: known at once, if anybody wants it."""
        self.note_answer(wire.encode(manifest))

    def note_answer(self, body: bytes) -> None:
        """The same for an answer that nobody has decoded yet."""
        thing = self._decode(memoryview(body))
        if key_of(thing) in self._interest:
            self._written.add(key_of(thing))
            self._learn(key_of(thing), thing)

    async def run(self) -> None:
        """Watch what is wanted, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reads.run())
            while True:
                await self._rearrange.wait()
                self._rearrange.clear()
                self._arrange(tasks)

    def _arrange(self, tasks: asyncio.TaskGroup) -> None:
        chosen = watched_scopes(list(self._interest), self._reflectors.keys(), self._refused)
        for scope in sorted(self._reflectors.keys() - chosen):
            del self._reflectors[scope]
            self._tasks.pop(scope).cancel()
        for scope in sorted(chosen - self._reflectors.keys()):
            self._reflectors[scope] = reflector = self._reflector(scope)
            self._tasks[scope] = tasks.create_task(reflector.run())

    def _reflector(self, scope: Scope) -> Reflector[T] | Reflector[_Slip]:
        listing = partial(self._listing, scope)
        if scope.name:
            one = Selection(
                kind=self._kind, namespace=scope.namespace, field_selector=f"metadata.name={scope.name}"
            )
            whole = CallbackListener(listing, partial(self._listed_one, scope), self._saw, self._saw_deleted)
            return Reflector(self._client, one, self._decode, whole)
        many = Selection(kind=self._kind, namespace=scope.namespace, metadata_only=True)
        slips = CallbackListener(
            listing, partial(self._listed_slips, scope), self._saw_slip, self._saw_deleted
        )
        return Reflector(
            self._client, many, _decode_slip, slips, on_trouble=partial(self._narrow_if_forbidden, scope)
        )

    def _narrow_if_forbidden(self, scope: Scope, trouble: errors.KubeError) -> None:
        if isinstance(trouble, errors.Forbidden):
            where = scope.namespace or "the whole cluster"
            log.info("no right to watch so widely", kind=str(self._kind), where=where)
            self._refused.add(scope)
            self._rearrange.set()

    def _drop(self, key: ObjectKey) -> None:
        del self._interest[key]
        self._known.pop(key, None)
        self._written.discard(key)
        self._reads.forget(key)

    def _wanted_in(self, scope: Scope) -> list[ObjectKey]:
        return sorted(key for key in self._interest if scope_of(key, {scope}) is not None)

    def _listing(self, scope: Scope) -> None:
        self._written = {key for key in self._written if scope_of(key, {scope}) is None}

    def _listed_one(
        self, scope: Scope, things: list[T], version: str, unreadable: Iterable[ObjectKey]
    ) -> None:
        for thing in things:
            self._learn(scope, thing, for_certain=True)
        if not things and scope not in unreadable:
            self._learn(scope, None, version, for_certain=True)

    def _listed_slips(
        self, scope: Scope, things: list[_Slip], version: str, unreadable: Iterable[ObjectKey]
    ) -> None:
        slips = {key_of(thing): thing for thing in things}
        for key in self._wanted_in(scope):
            if key in slips:
                self._saw_slip(slips[key])
            else:
                self._learn(key, None, version, for_certain=True)

    def _saw(self, thing: T) -> None:
        self._learn(key_of(thing), thing)

    def _saw_slip(self, slip: _Slip) -> None:
        key = key_of(slip)
        known = self._known.get(key)
        if key in self._interest and (known is None or known.version != slip.metadata.resource_version):
            self._reads.soon(key)

    def _saw_deleted(self, key: ObjectKey, version: str) -> None:
        self._learn(key, None, version)

    async def _read(self, key: ObjectKey) -> None:
        before = self._known.get(key)
        try:
            self._learn(key, await self._client.read(self._kind, key, self._decode))
        except errors.NotFound:
            if self._known.get(key) is before:
                self._learn(key, None, for_certain=True)

    def _learn(
        self, key: ObjectKey, thing: T | None, version: str = "", *, for_certain: bool = False
    ) -> None:
        """Remember what the server has, unless we know something newer, and tell who listens.

        A list knows for certain, even with a lower version (servers are restored from backups), but not
        about what we wrote since it began.
        """
        if key not in self._interest:
            return
        known = self._known.get(key)
        since = self._steady() if self._steady is not None else None
        new = _Known(thing, thing.metadata.resource_version if thing is not None else version, since)
        may_be_late = not for_certain or key in self._written
        if known is not None and may_be_late and is_older(new.version, known.version):
            return
        is_same = known is not None and _is_same(known, new)
        keeps = known is not None and (is_same or _has_same_content(known, new))
        self._known[key] = new._replace(since=known.since) if known is not None and keeps else new
        if not is_same:
            for callback in self._callbacks:
                callback(key, thing)


def _is_same(one: _Known[T], other: _Known[T]) -> bool:
    if one.thing is None or other.thing is None:
        return one.thing is other.thing
    return one.version == other.version


def _has_same_content(one: _Known[T], other: _Known[T]) -> bool:
    """Whether only metadata changed: who mounts it has nothing new to learn."""
    old, new = one.thing, other.thing
    if not isinstance(old, Secret) or not isinstance(new, Secret):
        return False
    return (old.metadata.uid, old.digests) == (new.metadata.uid, new.digests)


def secrets(client: Client, steady: Steady) -> NamedObjects[Secret]:
    """Secrets as facts: digests in place of values."""
    return NamedObjects(client, kinds.SECRET, decode_secret, steady)


def config_maps(client: Client) -> NamedObjects[ConfigMap]:
    """ConfigMaps, whole."""
    return NamedObjects(client, kinds.CONFIG_MAP, wire.decoder(ConfigMap))


def revisions(client: Client) -> NamedObjects[Child]:
    """ControllerRevisions, whole."""
    return NamedObjects(client, kinds.CONTROLLER_REVISION, decode_child)
