"""Which kinds the API server has: some are optional (ServiceMonitor), and CRDs may come later."""

from slurm_operator import wire
from slurm_operator.api.kind import Kind
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import NotFound
from slurm_operator.kube.request import Request


class _Version(wire.CamelRecord):
    version: str


class _Group(wire.CamelRecord):
    versions: list[_Version] = []
    preferred_version: _Version | None = None


class _Resource(wire.CamelRecord):
    name: str
    kind: str


class _Resources(wire.CamelRecord):
    resources: list[_Resource] = []


class Discovery:
    """Answers from memory; after `forget` it asks again. Raises KubeError when the server does not answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._versions: dict[str, tuple[str, ...]] = {}
        self._kinds: dict[str, frozenset[tuple[str, str]]] = {}

    async def versions(self, group: str) -> tuple[str, ...]:
        """The versions of a group, the preferred one first; none when the group is unknown."""
        if group not in self._versions:
            body = await self._ask(f"/apis/{group}")
            found = _Group() if body is None else wire.decode(body, _Group)
            preferred = [found.preferred_version] if found.preferred_version else []
            self._versions[group] = tuple(dict.fromkeys(v.version for v in preferred + found.versions))
        return self._versions[group]

    async def serves(self, kind: Kind) -> bool:
        """Whether the server has this kind in this version."""
        api = kind.api_version
        if api not in self._kinds:
            body = await self._ask(f"/apis/{api}" if kind.group else f"/api/{api}")
            found = _Resources() if body is None else wire.decode(body, _Resources)
            self._kinds[api] = frozenset((resource.name, resource.kind) for resource in found.resources)
        return (kind.plural, kind.kind) in self._kinds[api]

    def forget(self) -> None:
        self._versions.clear()
        self._kinds.clear()

    async def _ask(self, path: str) -> bytes | None:
        try:
            return await self._client.send(
                Request(verb="get", method="GET", path=path, resource="discovery", subject=path)
            )
        except NotFound:
            return None
