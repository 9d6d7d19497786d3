"""Keeping the webhook's certificates good: made once, shared by all replicas, renewed, and made known.

Replicas need no leader for this. The first one creates the Secret and the others read it; a renewal is
written over the version that it was decided about, so of two only one succeeds and the other reads that.
"""

import asyncio
import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import structlog

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from slurm_operator.manifests.kinds import MUTATING_WEBHOOKS, SECRET, VALIDATING_WEBHOOKS, Kind
from slurm_operator.manifests.meta import Manifest
from slurm_operator.webhook.authority import Bundle, Unusable, first, renewed
from slurm_operator.webhook.serving import Served, read_files

log = structlog.get_logger(__name__)

_TRIES: Final = 5


class Keeper(Protocol):
    """Looks after the certificate in use, again and again."""

    seconds: float

    async def look(self) -> None:
        """Bring everything up to date. Raises Unusable or KubeError; what is in use then stays."""
        ...


class FileKeeper:
    """Certificates of somebody else, in files; read again, so that a renewal needs no restart."""

    seconds = 5.0

    def __init__(self, place: Path, served: Served) -> None:
        self._place = place
        self._served = served

    async def look(self) -> None:
        pair = await asyncio.to_thread(read_files, self._place)
        if self._served.use(*pair):
            log.info("certificate loaded", place=str(self._place), until=str(self._served.expires_at))


class SecretKeeper:
    """Certificates of our own, in a Secret; the authority is put into the webhook configurations."""

    seconds = 60.0

    def __init__(
        self,
        client: Client,
        secret: ObjectKey,
        hosts: Sequence[str],
        configurations: Sequence[str],
        served: Served,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._secret = secret
        self._hosts = hosts
        self._configurations = configurations
        self._served = served
        self._now = now

    async def look(self) -> None:
        bundle = await self.bundle()
        # Whoever is to believe a certificate hears of its authority before meeting it.
        for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            for name in self._configurations:
                await self._make_known(kind, name, bundle.trusted)
        if self._served.use(bundle.certificate, bundle.key):
            log.info("certificate loaded", secret=str(self._secret), until=str(self._served.expires_at))

    async def bundle(self) -> Bundle:
        """What all replicas serve with, made or renewed if that is due."""
        for _ in range(_TRIES):
            try:
                return await self._written(await self._client.get(SECRET, self._secret))
            except NotFound:
                pass
            except Conflict:
                continue  # Another replica was quicker; see what it wrote.
            try:
                return await self._created()
            except AlreadyExists:
                continue
        raise Unusable(f"Secret {self._secret} keeps changing under us")

    async def _created(self) -> Bundle:
        bundle = first(self._hosts, self._now())
        await self._client.create(SECRET, self._manifest(bundle))
        log.info("certificates made", secret=str(self._secret))
        return bundle

    async def _written(self, found: Manifest) -> Bundle:
        try:
            before = Bundle.of(_entries(found))
            after = renewed(before, self._hosts, self._now())
        except Unusable as why:
            log.warning("certificates created again", secret=str(self._secret), why=str(why))
            before, after = None, first(self._hosts, self._now())
        if after is not before:
            version = found["metadata"]["resourceVersion"]
            manifest = self._manifest(after)
            manifest["metadata"]["resourceVersion"] = version
            await self._client.replace(SECRET, manifest)
            log.info("certificates renewed", secret=str(self._secret))
        return after

    def _manifest(self, bundle: Bundle) -> Manifest:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": self._secret.namespace, "name": self._secret.name},
            "type": "Opaque",
            "data": {name: base64.b64encode(value).decode() for name, value in bundle.entries.items()},
        }

    async def _make_known(self, kind: Kind, name: str, trusted: bytes) -> None:
        try:
            found = await self._client.get(kind, ObjectKey("", name))
        except NotFound:
            return
        bundle = base64.b64encode(trusted).decode()
        outdated = [
            index
            for index, webhook in enumerate(found.get("webhooks") or ())
            if webhook["clientConfig"].get("caBundle") != bundle
        ]
        if not outdated:
            return
        version = {"op": "test", "path": "/metadata/resourceVersion", "value": _version(found)}
        writes = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
            for index in outdated
        ]
        await self._client.json_patch(kind, ObjectKey("", name), [version, *writes])
        log.info("authority made known", configuration=name, kind=kind.kind)


def _version(found: Manifest) -> str:
    return str(found["metadata"]["resourceVersion"])


def _entries(secret: Manifest) -> dict[str, bytes]:
    try:
        return {name: base64.b64decode(value) for name, value in (secret.get("data") or {}).items()}
    except (binascii.Error, ValueError) as error:
        raise Unusable(f"the Secret cannot be decoded: {error}") from error


async def keep(keeper: Keeper, heard: Callable[[str | None], None]) -> None:
    """Look every so often, for ever. `heard` is told what went wrong last, or None when all is well."""
    pause = 1.0
    while True:
        try:
            await keeper.look()
            heard(None)
            pause = keeper.seconds
        except Exception as error:
            # Whatever it is, it must not end this: nobody would notice before the certificate runs out.
            is_expected = isinstance(error, Unusable | KubeError)
            log.warning("certificates not looked after", why=str(error), exc_info=not is_expected)
            heard(str(error) or type(error).__name__)
            pause = min(keeper.seconds, pause * 2)
        await asyncio.sleep(pause)
