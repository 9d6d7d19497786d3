"""The newest known state of a set of objects, from three sources that overtake each other.

Lists and watches tell what the server has, late but completely. Answers to our own writes tell at once, but
about one object only. The rules here make any mixture of them end at the server's state, and let no older
word undo a newer one. No I/O and no clock.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

import structlog

from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.kube.watch.indexes import Index, Indexes
from slurm_operator.kube.watch.resource_versions import is_older, number

T = TypeVar("T", bound=HasMeta)

Callback = Callable[[T | None, T | None], None]

log = structlog.get_logger(__name__)


class _Gone(NamedTuple):
    """An object that was deleted, and when we were told, counted in lists begun."""

    key: ObjectKey
    lists_begun: int


class Store(Generic[T]):
    """Objects by key, fed per watched namespace (the empty one is all of them)."""

    def __init__(
        self,
        indexes: Mapping[str, Index[T]] | None = None,
        *,
        on_reached: Callable[[], None] = lambda: None,
    ) -> None:
        self.callback_errors = 0
        self._on_reached = on_reached
        self._objects: dict[ObjectKey, T] = {}
        self._indexes = Indexes(indexes or {})
        self._callbacks: list[Callback[T]] = []
        self._positions: dict[str, str] = {}
        self._lists_begun = 0
        # What we wrote and the watch has not shown yet, with the lists begun before; what we deleted, by uid.
        self._ahead: dict[ObjectKey, int] = {}
        self._gone: dict[str, _Gone] = {}

    def get(self, key: ObjectKey) -> T | None:
        return self._objects.get(key)

    def values(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def by_index(self, index: str, value: Hashable) -> list[T]:
        """The objects under this value, in the order of their keys; KeyError for an index that is none."""
        return [self._objects[key] for key in sorted(self._indexes.keys(index, value))]

    def subscribe(self, callback: Callback[T]) -> None:
        """Call back with (old, new) on every change, and now for everything that is here."""
        self._callbacks.append(callback)
        for thing in list(self._objects.values()):
            self._tell(callback, None, thing)

    def position(self, namespace: str) -> str:
        """The version up to which the watch over this namespace has told everything; empty before any."""
        return self._positions.get(namespace) or self._positions.get("", "")

    def has_passed(self, key: ObjectKey, resource_version: str) -> bool:
        wanted, position = number(resource_version), number(self.position(key.namespace))
        return wanted is None or (position is not None and position >= wanted)

    def put(self, thing: T) -> None:
        """What the server answered to our write. Passed over when the watch already knows better."""
        key, meta = key_of(thing), thing.metadata
        if number(meta.resource_version) is None or meta.uid in self._gone:
            return
        held = self._objects.get(key)
        if held is None and self.position(key.namespace) and self.has_passed(key, meta.resource_version):
            return  # It came and went while the answer was on its way.
        if held is None or is_older(held.metadata.resource_version, meta.resource_version):
            self._ahead[key] = self._lists_begun
            self._set(key, thing)

    def forget(self, key: ObjectKey, uid: str) -> None:
        """The server said that this incarnation is gone: no late event may bring it back."""
        self._gone[uid] = _Gone(key, self._lists_begun)
        held = self._objects.get(key)
        if held is not None and held.metadata.uid == uid:
            self._remove(key)

    def on_upsert(self, namespace: str, thing: T) -> None:
        """The watch said ADDED or MODIFIED."""
        key, meta = key_of(thing), thing.metadata
        held = self._objects.get(key)
        known_better = held is not None and is_older(meta.resource_version, held.metadata.resource_version)
        if not known_better and meta.uid not in self._gone:
            self._ahead.pop(key, None)
            self._set(key, thing)
        self.reached(namespace, meta.resource_version)

    def on_delete(self, namespace: str, key: ObjectKey, uid: str, resource_version: str) -> None:
        """The watch said DELETED: it is gone, or no longer matches the selector."""
        self._gone.pop(uid, None)
        held = self._objects.get(key)
        if held is not None and held.metadata.uid == uid:
            # It left the selector and we wrote it since: it may be back, and the watch will tell.
            is_overtaken = key in self._ahead and is_older(resource_version, held.metadata.resource_version)
            if not is_overtaken:
                self._remove(key)
        self.reached(namespace, resource_version)

    def reached(self, namespace: str, resource_version: str) -> None:
        """The watch has told everything up to this version."""
        if resource_version and not is_older(resource_version, self._positions.get(namespace, "")):
            self._positions[namespace] = resource_version
            self._on_reached()

    def begin_list(self) -> int:
        """To be called before the first page is asked for; `replace` wants the result."""
        self._lists_begun += 1
        return self._lists_begun

    def replace(
        self,
        namespace: str,
        things: Iterable[T],
        *,
        resource_version: str,
        begun: int,
        unreadable: Iterable[ObjectKey] = (),
    ) -> None:
        """Everything that the namespace had at this version, which may be older than what we had: servers
        are restored from backups. Only what we wrote or deleted since the list began may know better.

        What we knew of objects that are there but cannot be read stays.
        """
        self._gone = {
            uid: gone
            for uid, gone in self._gone.items()
            if gone.lists_begun >= begun or not _is_within(gone.key, namespace)
        }
        leftover = {key for key in self._objects if _is_within(key, namespace)}.difference(unreadable)
        for thing in things:
            key, meta = key_of(thing), thing.metadata
            leftover.discard(key)
            if meta.uid not in self._gone and not self._is_ahead(key, meta.resource_version, begun):
                self._ahead.pop(key, None)
                self._set(key, thing)
        for key in sorted(leftover):
            if not self._is_ahead(key, resource_version, begun):
                self._remove(key)
        self._positions[namespace] = resource_version
        self._on_reached()

    def _is_ahead(self, key: ObjectKey, resource_version: str, begun: int) -> bool:
        """Whether we hold an answer to a write that a list begun then cannot have seen."""
        if key not in self._ahead or self._ahead[key] < begun:
            return False
        return is_older(resource_version, self._objects[key].metadata.resource_version)

    def _set(self, key: ObjectKey, thing: T) -> None:
        held = self._objects.get(key)
        if held is not None and held.metadata.resource_version == thing.metadata.resource_version:
            return  # The echo of what is known.
        self._objects[key] = thing
        self._changed(key, held, thing)

    def _remove(self, key: ObjectKey) -> None:
        self._ahead.pop(key, None)
        self._changed(key, self._objects.pop(key), None)

    def _changed(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        self._indexes.change(key, old, new)
        for callback in self._callbacks:
            self._tell(callback, old, new)

    def _tell(self, callback: Callback[T], old: T | None, new: T | None) -> None:
        try:
            callback(old, new)
        except Exception:
            # A mistake in one listener must not stop the watch that all others live on.
            self.callback_errors += 1
            log.exception("a listener of a watch cache failed", callback=repr(callback))


def _is_within(key: ObjectKey, namespace: str) -> bool:
    return not namespace or key.namespace == namespace
