"""Which kinds the API server has: some are optional (ServiceMonitor), and CRDs may come later."""

from collections.abc import Iterable
from typing import TypeVar

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import NotFound, Unreadable
from slurm_operator.kube.request import Request

T = TypeVar("T")


class _Version(wire.CamelRecord):
    version: str


class _Group(wire.CamelRecord):
    versions: list[_Version] = []
    preferred_version: _Version | None = None


class _Resource(wire.CamelRecord):
    name: str
    kind: str
    namespaced: bool = True


class _Resources(wire.CamelRecord):
    resources: list[_Resource] = []


class Discovery:
    """Answers from memory; after `forget` it asks again. Raises KubeError when the server does not answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._versions: dict[str, tuple[str, ...]] = {}
        self._kinds: dict[str, frozenset[tuple[str, str, bool]]] = {}

    async def versions(self, group: str) -> tuple[str, ...]:
        """The versions of a group, the preferred one first; none when the group is unknown."""
        if group not in self._versions:
            found = await self._ask(f"/apis/{group}", _Group) or _Group()
            preferred = [found.preferred_version] if found.preferred_version else []
            self._versions[group] = tuple(dict.fromkeys(v.version for v in preferred + found.versions))
        return self._versions[group]

    async def served(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Those of these groups that the server has."""
        return tuple([group for group in groups if await self.versions(group)])

    async def serves(self, kind: Kind) -> bool:
        """Whether the server has this kind in this version, with or without namespaces as we know it."""
        api = kind.api_version
        if api not in self._kinds:
            path = f"/apis/{api}" if kind.group else f"/api/{api}"
            found = await self._ask(path, _Resources) or _Resources()
            self._kinds[api] = frozenset((one.name, one.kind, one.namespaced) for one in found.resources)
        return (kind.plural, kind.kind, kind.namespaced) in self._kinds[api]

    def forget(self) -> None:
        self._versions.clear()
        self._kinds.clear()

    async def _ask(self, path: str, type_: type[T]) -> T | None:
        request = Request(verb="get", method="GET", path=path, resource="discovery", subject=path)
        try:
            return wire.decode(await self._client.send(request), type_)
        except NotFound:
            return None
        except wire.DecodeError as error:
            raise Unreadable(f"{path} does not say which kinds there are: {error}") from error
