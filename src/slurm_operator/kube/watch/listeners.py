"""Who listens to a reflector: something with these methods, or a few functions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from slurm_operator.api.shared.meta import HasMeta, ObjectKey

T = TypeVar("T", bound=HasMeta)
T_contra = TypeVar("T_contra", bound=HasMeta, contravariant=True)


class WatchListener(Protocol[T_contra]):
    """Is told everything about one namespace, or (empty) all. `kube.store.Store` explains the words."""

    def begin_list(self) -> int: ...

    def replace(
        self,
        namespace: str,
        things: Iterable[T_contra],
        *,
        resource_version: str,
        begun: int,
        unreadable: Iterable[ObjectKey] = (),
    ) -> None: ...

    def on_upsert(self, namespace: str, thing: T_contra) -> None: ...

    def on_delete(self, namespace: str, key: ObjectKey, uid: str, resource_version: str) -> None: ...

    def reached(self, namespace: str, resource_version: str) -> None: ...


@dataclass(frozen=True)
class CallbackListener(Generic[T]):
    """A sink made of functions, for those who keep nothing."""

    listing: Callable[[], None]
    listed: Callable[[list[T], str, Iterable[ObjectKey]], None]
    seen: Callable[[T], None]
    gone: Callable[[ObjectKey, str], None]

    def begin_list(self) -> int:
        self.listing()
        return 0

    def replace(
        self,
        namespace: str,
        things: Iterable[T],
        *,
        resource_version: str,
        begun: int,
        unreadable: Iterable[ObjectKey] = (),
    ) -> None:
        self.listed(list(things), resource_version, unreadable)

    def on_upsert(self, namespace: str, thing: T) -> None:
        self.seen(thing)

    def on_delete(self, namespace: str, key: ObjectKey, uid: str, resource_version: str) -> None:
        self.gone(key, resource_version)

    def reached(self, namespace: str, resource_version: str) -> None:
        """Who keeps nothing waits for no version."""
