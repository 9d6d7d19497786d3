"""A live copy of what the API server has of one kind: list once, then watch."""

from asyncio import Event
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import HasMeta, ObjectKey
from slurm_operator.kube.client import Client, Decode
from slurm_operator.kube.errors import KubeError
from slurm_operator.manifests.meta import Manifest

T = TypeVar("T", bound=HasMeta)

Index = Callable[[T], Iterable[Hashable]]


class Cache(Generic[T]):
    """Objects of one kind that match a selector, newest state, with indexes. Reads never wait.

    `namespaces` are watched one by one; the empty string is all of them (and right for cluster-wide kinds).
    """

    synced: Event  # Set once everything has been listed; never cleared.

    def __init__(
        self,
        client: Client,
        kind: Kind,
        decode: Decode[T],
        *,
        namespaces: Sequence[str] = ("",),
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> None:
        raise NotImplementedError

    async def run(self) -> None:
        """Keep the copy up to date until cancelled. Troubles are retried; `trouble` says what is wrong."""
        raise NotImplementedError

    def get(self, key: ObjectKey) -> T | None:
        raise NotImplementedError

    def values(self) -> Iterable[T]:
        raise NotImplementedError

    def by_index(self, index: str, value: Hashable) -> list[T]:
        raise NotImplementedError

    def subscribe(self, callback: Callable[[T | None, T | None], None]) -> None:
        """Call back with (old, new) on every change; None is "not there". What is here is told at once."""
        raise NotImplementedError

    def put(self, thing: T) -> None:
        """What the server answered to our write: visible at once, and no older watch event undoes it."""
        raise NotImplementedError

    def note_written(self, manifest: Manifest) -> None:
        """`put` for an answer of the client; what does not decode is left to the watch."""
        raise NotImplementedError

    def note_deleted(self, key: ObjectKey, uid: str) -> None:
        """The server said this object is gone: forget it now, and let no late watch event bring it back."""
        raise NotImplementedError

    def passed(self, key: ObjectKey, resource_version: str) -> bool:
        """Whether the watch over that key has reached the version; what is no number counts as reached."""
        raise NotImplementedError

    async def wait_passed(self, key: ObjectKey, resource_version: str, seconds: float) -> bool:
        """Wait for `passed`, at most that many seconds; whether it was reached."""
        raise NotImplementedError

    @property
    def trouble(self) -> KubeError | None:
        """Why the copy cannot be kept up to date right now (Forbidden, NotFound, Unreachable …), or None."""
        raise NotImplementedError

    @property
    def age_seconds(self) -> float:
        """Seconds since the server last said anything on the quietest of the watches."""
        raise NotImplementedError

    # Counters, for metrics: since start.
    lists: int
    watches: int
    events: int
    undecodable: int
    callback_errors: int

    @property
    def unreadable(self) -> Mapping[ObjectKey, str]:
        """Objects that are there now and do not decode, each with why."""
        raise NotImplementedError
