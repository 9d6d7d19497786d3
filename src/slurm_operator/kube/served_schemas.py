"""Which fields of `.status` the API server takes: those of the CRDs that it has, which may not be ours.

Server-side apply refuses a whole status for one field that the schema lacks. So the served schema is read,
and read again when the CRDs change: a server that lacks something is asked now and then.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import structlog

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import ApiError, KubeError
from slurm_operator.kube.lease import clock_that_never_stops
from slurm_operator.kube.request import Request

log = structlog.get_logger(__name__)

# How soon new CRDs are noticed. The answer is a list of the API versions, with a hash of what each contains.
LOOK_SECONDS: Final = 15.0
# Where we may not look, or nobody answers.
UNREAD_SECONDS: Final = 60.0

_INDEX: Final = "/openapi/v3"
_UNDECLARED: Final = "field not declared in schema"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_ZERO: Final = {"string": "", "integer": 0, "number": 0, "boolean": False}

Schema = Mapping[str, Any]


class _Place(wire.Record, rename={"url": "serverRelativeURL"}):
    url: str = ""


class _Index(wire.Record):
    paths: dict[str, _Place] = {}


class _Parts(wire.Record):
    status: Any = None


class _Definition(wire.Record, rename={"kinds": "x-kubernetes-group-version-kind"}):
    kinds: list[dict[str, str]] = []
    properties: _Parts = _Parts()


class _Components(wire.Record):
    schemas: dict[str, _Definition] = {}


class _Document(wire.Record):
    components: _Components = _Components()


class _Read(wire.Record):
    """What one API version has: where that was read, which changes with it, and the status of each kind."""

    url: str
    statuses: dict[str, Any]


class ServedSchemas:
    """The schemas of `.status` that the server has. `wake` hears of API groups whose CRDs have changed."""

    def __init__(
        self,
        client: Client,
        wake: Callable[[str], None] = lambda group: None,
        clock: Callable[[], float] = clock_that_never_stops,
    ) -> None:
        self._client = client
        self._wake = wake
        self._clock = clock
        self._read: dict[str, _Read] = {}
        self._unread_until: dict[str, float] = {}
        self._lacking: dict[Kind, tuple[str, ...]] = {}
        self._busy = asyncio.Lock()

    async def status_of(self, kind: Kind, ours: Schema) -> Schema | None:
        """The served schema of its status; None where nobody can tell. What `ours` has besides is logged."""
        async with self._busy:
            if self._of(kind) is None and self._clock() >= self._unread_until.get(kind.api_version, 0.0):
                await self._look(kind)
        found = self._of(kind)
        schema = found.statuses.get(kind.kind) if found is not None else None
        if schema is not None:
            self._note(kind, tuple(lacking(ours, schema)))
        return schema

    async def has_changed(self, kind: Kind) -> bool:
        """Whether the server has another schema than the one that was known; it is known from now on."""
        async with self._busy:
            before = self._of(kind)
            await self._look(kind)
            return self._of(kind) != before

    async def run(self) -> None:
        """Look again from time to time while the CRDs lack something that we would say."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for kind in {one.api_version: one for one, missing in self._lacking.items() if missing}.values():
                if await self.has_changed(kind):
                    self._wake(kind.group)

    def _of(self, kind: Kind) -> _Read | None:
        return self._read.get(kind.api_version)

    async def _look(self, kind: Kind) -> None:
        """Read what the server has of this API version, unless that is known already."""
        try:
            index = wire.decode(await self._get(_INDEX), _Index)
            place = index.paths.get(f"apis/{kind.api_version}", _Place())
            before = self._of(kind)
            if before is None or before.url != place.url:
                found = await self._statuses(kind, place.url)
                self._read[kind.api_version] = _Read(url=place.url, statuses=found)
        except (KubeError, wire.DecodeError) as error:
            self._unread_until[kind.api_version] = self._clock() + UNREAD_SECONDS
            log.info("the schemas of the CRDs cannot be read", version=kind.api_version, why=str(error))

    async def _statuses(self, kind: Kind, url: str) -> dict[str, Any]:
        if not url:
            return {}
        document = wire.decode(await self._get(url), _Document)
        wanted = {"group": kind.group, "version": kind.version}
        return {
            named["kind"]: definition.properties.status
            for definition in document.components.schemas.values()
            for named in definition.kinds
            if wanted.items() <= named.items() and definition.properties.status is not None
        }

    async def _get(self, url: str) -> bytes:
        place = urlsplit(url)
        params = dict(parse_qsl(place.query))
        return await self._client.send(
            Request(verb="get", method="GET", path=place.path, params=params, resource="openapi")
        )

    def _note(self, kind: Kind, missing: tuple[str, ...]) -> None:
        """Say it once, and once that it is over."""
        before = self._lacking.get(kind, ())
        self._lacking[kind] = missing
        if missing and missing != before:
            log.warning(
                "the CRD lacks fields of status, which are left out",
                kind=str(kind),
                fields=", ".join(missing),
                remedy="upgrade the CRDs; `kubectl slurm doctor` gives the command",
            )
        elif before and not missing:
            log.info("the CRD has all fields of status now", kind=str(kind))


def is_schema_trouble(error: KubeError) -> bool:
    """Whether the server refused an object for a field that its schema lacks."""
    return isinstance(error, ApiError) and _UNDECLARED in error.message


def fitting(value: Any, schema: Schema) -> Any:
    """The value without what the schema lacks."""
    match value:
        case dict() if "properties" in schema:
            known, keeps_others = schema["properties"], bool(schema.get(_PRESERVE))
            return {
                key: fitting(item, known.get(key, {}))
                for key, item in value.items()
                if key in known or keeps_others
            }
        case dict() if isinstance(schema.get("additionalProperties"), Mapping):
            return {key: fitting(item, schema["additionalProperties"]) for key, item in value.items()}
        case list():
            return [fitting(item, schema.get("items", {})) for item in value]
        case _:
            return value


def completed(value: Any, schema: Schema) -> Any:
    """The value with what the schema requires and has nothing to say, as Go writes it: empty.

    A condition without a message is one of them: Kubernetes' own type of conditions requires one.
    """
    match value:
        case dict():
            known = schema.get("properties", {})
            zeros = {name: _ZERO.get(known.get(name, {}).get("type")) for name in schema.get("required", ())}
            missing = {name: zero for name, zero in zeros.items() if zero is not None}
            return missing | {key: completed(item, known.get(key, {})) for key, item in value.items()}
        case list():
            return [completed(item, schema.get("items", {})) for item in value]
        case _:
            return value


def lacking(ours: Schema, served: Schema, path: str = "") -> Iterator[str]:
    """The fields of our schema that the served one lacks, by their paths."""
    if served.get(_PRESERVE):
        return
    known = served.get("properties", {})
    for name, inner in ours.get("properties", {}).items():
        if name not in known:
            yield f"{path}{name}"
            continue
        yield from lacking(inner, known[name], f"{path}{name}.")
        yield from lacking(inner.get("items", {}), known[name].get("items", {}), f"{path}{name}[].")
