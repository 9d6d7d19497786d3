"""Secrets and ConfigMaps that others name: only those, never all Secrets of a cluster."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import HasMeta, ObjectKey
from slurm_operator.kube.client import Client, Decode
from slurm_operator.manifests.objects import ConfigMap, Secret

T = TypeVar("T", bound=HasMeta)


class Referenced(Generic[T]):
    """The named objects of one kind, for as long as somebody wants them."""

    def __init__(self, client: Client, kind: Kind, decode: Decode[T]) -> None:
        raise NotImplementedError

    async def run(self) -> None:
        """Watch what is wanted, until cancelled."""
        raise NotImplementedError

    def want(self, owner: Hashable, keys: Iterable[ObjectKey]) -> None:
        """From now on `owner` is interested in exactly these; nothing is kept that nobody wants."""
        raise NotImplementedError

    def get(self, key: ObjectKey) -> T | None:
        """The object, None when it is absent or not known yet: ask `knows`."""
        raise NotImplementedError

    def knows(self, key: ObjectKey) -> bool:
        """Whether `get` is the server's answer, rather than our not having asked yet."""
        raise NotImplementedError

    def subscribe(self, callback: Callable[[ObjectKey, T | None], None]) -> None:
        """Call back when a wanted object becomes known, changes or goes (None)."""
        raise NotImplementedError


def secrets(client: Client) -> Referenced[Secret]:
    raise NotImplementedError


def config_maps(client: Client) -> Referenced[ConfigMap]:
    raise NotImplementedError


async def read_secret(client: Client, key: ObjectKey) -> Mapping[str, bytes]:
    """The values of a Secret, fresh from the server: for the moment of writing, never to be kept."""
    raise NotImplementedError


def value_digest(value: bytes) -> str:
    """What `Secret.digests` holds for a value: the first 16 hex digits of its SHA-256."""
    raise NotImplementedError
