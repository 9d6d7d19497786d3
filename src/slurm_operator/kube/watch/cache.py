"""A live copy of what the API server has of one kind. Reads never wait and never poll."""

import asyncio
from collections import ChainMap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import structlog

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta, ObjectKey
from slurm_operator.kube.client import Client, Decode
from slurm_operator.kube.errors import KubeError
from slurm_operator.kube.request import Selection
from slurm_operator.kube.watch.indexes import Index
from slurm_operator.kube.watch.reflector import Reflector
from slurm_operator.kube.watch.store import Store
from slurm_operator.manifests.meta import Manifest

T = TypeVar("T", bound=HasMeta)

log = structlog.get_logger(__name__)


class _Waiting(NamedTuple):
    key: ObjectKey
    resource_version: str
    over: asyncio.Future[None]


class Cache(Generic[T]):
    """Objects of one kind that match a selector, in their newest state, with indexes.

    `namespaces` are watched one by one; the empty string is all of them (and right for cluster-wide kinds).
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        decode: Decode[T],
        *,
        namespaces: Sequence[str] = ("",),
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()  # Set once everything has been listed; never cleared.
        self._decode = decode
        self._store: Store[T] = Store(indexes, on_reached=self._wake)
        self._waiting: list[_Waiting] = []
        self._reflectors = [
            Reflector(
                client,
                Selection(
                    kind=kind,
                    namespace=namespace,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    metadata_only=metadata_only,
                ),
                decode,
                self._store,
            )
            for namespace in namespaces
        ]

    async def run(self) -> None:
        """Keep the copy up to date until cancelled. No trouble ends it; `trouble` says what is wrong."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors:
                tasks.create_task(reflector.run())
            for reflector in self._reflectors:
                await reflector.synced.wait()
            self.synced.set()

    def get(self, key: ObjectKey) -> T | None:
        return self._store.get(key)

    def values(self) -> Iterator[T]:
        return self._store.values()

    def __len__(self) -> int:
        return len(self._store)

    def by_index(self, index: str, value: Hashable) -> list[T]:
        """The objects for which the index function gave this value, in the order of their keys."""
        return self._store.by_index(index, value)

    def subscribe(self, callback: Callable[[T | None, T | None], None]) -> None:
        """Call back with (old, new) on every change; None is "not there". What is here is told at once."""
        self._store.subscribe(callback)

    def put(self, thing: T) -> None:
        """What the server answered to our write: visible at once, and no older watch event undoes it."""
        self._store.put(thing)

    def note_written(self, manifest: Manifest) -> None:
        """`put` for an answer of the client; what does not decode is left to the watch."""
        self.note_answer(wire.encode(manifest))

    def note_answer(self, body: bytes) -> None:
        """The same for an answer that nobody has decoded yet."""
        try:
            thing = self._decode(memoryview(body))
        except Exception as error:  # The reflector counts such objects; here nothing is lost but time.
            log.warning("the answer to a write does not decode", kind=str(self.kind), why=str(error))
            return
        self._store.put(thing)

    def note_deleted(self, key: ObjectKey, uid: str) -> None:
        """The server said this object is gone: forget it now, and let no late watch event bring it back."""
        self._store.forget(key, uid)

    def passed(self, key: ObjectKey, resource_version: str) -> bool:
        """Whether the watch over that key has reached the version; what is no number counts as reached."""
        return self._store.has_passed(key, resource_version)

    async def wait_passed(self, key: ObjectKey, resource_version: str, seconds: float) -> bool:
        """Wait for `passed`, at most that long; whether it was reached."""
        if self.passed(key, resource_version):
            return True
        waiting = _Waiting(key, resource_version, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(seconds):
                await waiting.over
        except TimeoutError:
            return False
        finally:
            self._waiting.remove(waiting)
        return True

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.over.done() and self.passed(waiting.key, waiting.resource_version):
                waiting.over.set_result(None)

    @property
    def trouble(self) -> KubeError | None:
        """Why the copy cannot be kept up to date right now (Forbidden, NotFound, Unreachable …), or None."""
        return next((reflector.trouble for reflector in self._reflectors if reflector.trouble), None)

    @property
    def age_seconds(self) -> float:
        """Seconds since the server last said anything, on the quietest of the watches."""
        return max(reflector.age_seconds for reflector in self._reflectors)

    @property
    def unreadable(self) -> Mapping[ObjectKey, str]:
        """Objects that are there now and do not decode, each with why."""
        return ChainMap(*(reflector.unreadable for reflector in self._reflectors))

    # Counters since start, for metrics.

    @property
    def lists(self) -> int:
        return sum(reflector.lists for reflector in self._reflectors)

    @property
    def watches(self) -> int:
        return sum(reflector.watches for reflector in self._reflectors)

    @property
    def events(self) -> int:
        return sum(reflector.events for reflector in self._reflectors)

    @property
    def undecodable(self) -> int:
        return sum(reflector.undecodable for reflector in self._reflectors)

    @property
    def callback_errors(self) -> int:
        return self._store.callback_errors
