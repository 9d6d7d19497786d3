"""Facts about other objects, read when a manifest that depends on them is written.

What cannot be read, for want of rights or of an answer, was not looked up: then nothing is said about it, and
the reconciler finds out.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

import structlog

from slurm_operator import wire
from slurm_operator.api.schema.codec import decoder
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.problems import References
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.references import cluster_names, node_set_names, questions
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError, NotFound
from slurm_operator.kube.request import Selection
from slurm_operator.manifests.kinds import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM
from slurm_operator.manifests.meta import Manifest

log = structlog.get_logger(__name__)

# A name becomes part of a URL, so nothing else may be in it.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def is_name(text: str) -> bool:
    """Whether an object can be called so."""
    return _NAME.fullmatch(text) is not None and ".." not in text


class Lookup:
    """Reads what the problems of a manifest depend on."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def references(self, thing: Any) -> References:
        namespace = thing.metadata.namespace
        if not is_name(namespace):
            return References()
        asked = questions(thing)
        config_maps, claims, siblings = await asyncio.gather(
            self._named(CONFIG_MAP, namespace, asked.config_maps),
            self._named(PERSISTENT_VOLUME_CLAIM, namespace, asked.claims),
            self._all(asked.siblings, namespace),
        )
        return References(
            config_maps={name: _keys(found) for name, found in config_maps.items()},
            claims={name: _modes(found) for name, found in claims.items()},
            node_set_names=node_set_names(thing, siblings) if isinstance(thing, NodeSet) else {},
            cluster_names=cluster_names(thing, siblings) if isinstance(thing, Controller) else {},
        )

    async def live_object(self, cls: type[Any], namespace: str, name: str) -> Any | None:
        """The object of this name; None when there is none, or nobody may see it."""
        if not is_name(namespace) or not is_name(name):
            return None
        there = await self._all(cls, namespace, f"metadata.name={name}")
        return next(iter(there), None)

    async def exists(self, kind: Kind, key: ObjectKey) -> bool:
        """Whether there is such an object. Raises KubeError when that cannot be told."""
        return await self._get(kind, key) is not None

    async def metadata(self, kind: Kind, key: ObjectKey) -> Manifest | None:
        """Labels, annotations and so on of an object; None when there is none. Raises KubeError."""
        found = await self._get(kind, key)
        return found.get("metadata", {}) if found is not None else None

    async def _get(self, kind: Kind, key: ObjectKey) -> Manifest | None:
        try:
            return await self._client.get(kind, key)
        except NotFound:
            return None

    async def _named(
        self, kind: Kind, namespace: str, names: tuple[str, ...]
    ) -> Mapping[str, Manifest | None]:
        wanted = [name for name in names if is_name(name)]
        answers = await asyncio.gather(
            *(self._get(kind, ObjectKey(namespace, name)) for name in wanted), return_exceptions=True
        )
        found: dict[str, Manifest | None] = {}
        for name, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, KubeError):
                log.warning("not looked up", kind=str(kind), name=name, why=str(answer))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found[name] = answer
        return found

    async def _all(self, cls: Any, namespace: str, fields: str = "") -> list[Any]:
        if cls is None:
            return []
        decode, found = decoder(cls), []
        try:
            selection = Selection(kind=cls.KIND, namespace=namespace, field_selector=fields)
            async for page in self._client.list_pages(selection):
                found += [_readable(decode, item) for item in page.items]
        except KubeError as error:
            log.warning("not looked up", kind=str(cls.KIND), namespace=namespace, why=str(error))
        return [thing for thing in found if thing is not None]


def _readable(decode: Any, item: Any) -> Any:
    try:
        return decode(item)
    except wire.DecodeError:
        return None  # One that cannot be read keeps nobody from writing another.


def _keys(found: Manifest | None) -> frozenset[str] | None:
    if found is None:
        return None
    return frozenset({*(found.get("data") or ()), *(found.get("binaryData") or ())})


def _modes(found: Manifest | None) -> tuple[str, ...] | None:
    return tuple(found.get("spec", {}).get("accessModes") or ()) if found is not None else None
