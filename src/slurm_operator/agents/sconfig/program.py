"""The whole process: health at once, then the caches, then the lease, then pass after pass."""

import asyncio
import signal
import socket
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from slurm_operator.agents.sconfig import objects
from slurm_operator.agents.sconfig.files import Root
from slurm_operator.agents.sconfig.metrics import Metrics
from slurm_operator.agents.sconfig.reconfigure import reconfigure
from slurm_operator.agents.sconfig.report import Reconfigured
from slurm_operator.agents.sconfig.writer import Writer
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError
from slurm_operator.kube.lease import Elector, clock_that_never_stops
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.kube.watch.named_objects import config_maps, read_secret
from slurm_operator.runtime.metrics_auth import MetricsGuard, self_signed_context
from slurm_operator.runtime.serve import health_routes, metrics_route, serving
from slurm_operator.runtime.settings import Address
from slurm_operator.slurmrest.client import SlurmRest

log = structlog.get_logger(__name__)

# Where Soperator keeps the key that slurmrestd's tokens are signed with, and whose tokens it signs.
KEY_SECRET: Final = "{cluster}-rest-jwt-key"  # noqa: S105 - the name of a Secret
KEY_ENTRY: Final = "rest_jwt.key"
SLURM_USER: Final = "root"

LEASE_SUFFIX: Final = ".vqeyz6ae.nebius.ai"

# A client of a network file system may have a name cached for 15 s.
SETTLE_SECONDS: Final = 16.0

LOST_LEASE: Final = 3
BROKEN: Final = 1


@dataclass(frozen=True)
class Settings:
    """How one writer runs."""

    cluster: str = "soperator"
    namespace: str = "default"
    root: str = "/mnt/jail"
    slurm_url: str = "http://localhost:6820"
    poll_seconds: float = 20.0
    wait_seconds: float = 60.0
    settle_seconds: float = SETTLE_SECONDS
    health: Address = field(default_factory=lambda: Address("0.0.0.0", 8081))
    metrics: Address = field(default_factory=lambda: Address("0.0.0.0", 8080))
    metrics_secure: bool = False
    leader_elect: bool = True


class Program:
    """One running writer."""

    def __init__(
        self, access: Access, settings: Settings, clock: Callable[[], float] = clock_that_never_stops
    ) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._client = Client(access, may_write=self._may_write, on_call=self._metrics.called)
        self._elector: Elector | None = None
        if settings.leader_elect:
            lease = ObjectKey(settings.namespace, f"{settings.cluster}{LEASE_SUFFIX}")
            self._elector = Elector(self._client, lease, f"{socket.gethostname()}_{uuid.uuid4()}")
        self._configs = Cache(
            self._client,
            objects.KIND,
            objects.decode,
            namespaces=(settings.namespace,),
            label_selector=f"{objects.INSTANCE_LABEL}={settings.cluster}",
        )
        self._config_maps = config_maps(self._client)
        self.writer = Writer(
            self._client,
            Root(settings.root),
            self._configs,
            self._config_maps,
            self._reconfigure,
            self._metrics,
            settle_seconds=settings.settle_seconds,
            clock=clock,
        )

    def _may_write(self) -> bool:
        return self._elector is None or self._elector.is_leader

    async def run(self) -> int:
        """Until SIGTERM or SIGINT (0), until the lease is lost (3), or until a part of us breaks (1)."""
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ending.set)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._client)
            await self._start_servers(stack)
            parts = [self._configs.run(), self._config_maps.run(), self._work(), ending.wait()]
            tasks: list[asyncio.Task[Any]] = [asyncio.create_task(part) for part in parts]
            stack.push_async_callback(_ended, tasks)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return await self._code(tasks, ending)

    async def _code(self, tasks: list["asyncio.Task[Any]"], ending: asyncio.Event) -> int:
        if not ending.is_set():
            broken = next(task for task in tasks if task.done())
            if broken.exception() is None:
                log.error("lease lost: another writer has taken over, or the API server is away")
                return LOST_LEASE
            log.critical("a part of the writer broke", exc_info=broken.exception())
            return BROKEN
        await _ended(tasks)
        if self._elector is not None:
            await self._elector.release()
        return 0

    async def _start_servers(self, stack: AsyncExitStack) -> None:
        settings = self._settings
        await stack.enter_async_context(
            serving(settings.health, health_routes(lambda: None, self.why_not_ready))
        )
        guard = MetricsGuard(self._client).why_not if settings.metrics_secure else None
        tls = self_signed_context() if settings.metrics_secure and not settings.metrics.is_off else None
        await stack.enter_async_context(
            serving(settings.metrics, metrics_route(self._metrics.text, guard), tls)
        )

    async def _work(self) -> None:
        """Returns when the lease is lost."""
        await self._configs.synced.wait()
        if self._elector is None:
            await self.writer.run()
            return
        await self._elector.acquire()
        working = asyncio.create_task(self.writer.run())
        try:
            await self._elector.hold()
        finally:
            await _ended([working])

    async def _reconfigure(self) -> Reconfigured:
        settings = self._settings
        secret = ObjectKey(settings.namespace, KEY_SECRET.format(cluster=settings.cluster))
        try:
            key = (await read_secret(self._client, secret)).get(KEY_ENTRY, b"")
        except KubeError as error:
            return Reconfigured(f"Cannot read the key for Slurm's tokens in Secret {secret}: {error}.")
        if not key:
            return Reconfigured(f"Secret {secret} has no entry {KEY_ENTRY}, which signs Slurm's tokens.")
        slurm = SlurmRest([settings.slurm_url], lambda: key, now=lambda: datetime.now(UTC), user=SLURM_USER)
        return await reconfigure(
            slurm, poll_seconds=settings.poll_seconds, wait_seconds=settings.wait_seconds
        )

    def why_not_ready(self) -> str | None:
        if self._configs.synced.is_set():
            return None
        trouble = self._configs.trouble
        return "Reading the JailedConfigs" + (f": {trouble}" if trouble is not None else ".")


async def _ended(tasks: list["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
