"""The whole webhook: health at once, TLS as soon as there is a certificate, and an end that drops nothing."""

import asyncio
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from slurm_operator.api import registry
from slurm_operator.api.registry import Registry
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.manifests.builders import admission
from slurm_operator.runtime.metrics_auth import MetricsGuard, self_signed_context
from slurm_operator.runtime.serve import health_routes, metrics_route, serving
from slurm_operator.runtime.settings import Address
from slurm_operator.webhook.binding import TopologyHelper
from slurm_operator.webhook.guarded import SecretGuard
from slurm_operator.webhook.judge import Judge
from slurm_operator.webhook.keeping import FileKeeper, Keeper, SecretKeeper, keep
from slurm_operator.webhook.lookup import Lookup
from slurm_operator.webhook.metrics import Metrics
from slurm_operator.webhook.server import Admission, Answerer, listening
from slurm_operator.webhook.serving import Served, has_certificate

log = structlog.get_logger(__name__)

# Where existing Deployments mount their certificate.
CERTIFICATES: Final = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108 - others chose it

# A lookup must leave time for the answer.
LOOKUP_SECONDS: Final = 3.0

# Kubernetes goes on sending requests for a moment after it has told us to end.
LEAVING_SECONDS: Final = 3.0


@dataclass(frozen=True)
class Settings:
    """How one webhook runs."""

    server: Address
    health: Address
    metrics: Address
    metrics_secure: bool = False
    namespaces: tuple[str, ...] = ()
    certificates: Path | None = None  # None: those that are mounted where others mount them, or our own.
    secret: str = "slurm-operator-webhook-certificates"  # noqa: S105 - the name of a Secret
    service: str = admission.NAME
    more_hosts: tuple[str, ...] = ()
    configurations: tuple[str, ...] = (admission.NAME,)
    pods_binding: bool = True
    kinds: Registry = registry.DEFAULT  # Those that are on.
    leaving_seconds: float = LEAVING_SECONDS

    def hosts(self, namespace: str) -> tuple[str, ...]:
        """The names under which the API server, or anybody in the cluster, calls us."""
        own = f"{self.service}.{namespace}"
        return (*self.more_hosts, self.service, own, f"{own}.svc", f"{own}.svc.cluster.local")


class Webhook:
    """One running webhook."""

    def __init__(self, access: Access, settings: Settings) -> None:
        self._settings = settings
        self._metrics = Metrics()
        self._served = Served()
        self._trouble: str | None = "the first certificate is on its way"
        self._is_leaving = False
        self._loaded = asyncio.Event()
        self._client = Client(access, on_call=self._metrics.called, deadline_seconds=LOOKUP_SECONDS)
        self._keeper = self._chosen_keeper(access.namespace)
        self._admission = Admission(answerers(Lookup(self._client), settings), self._metrics)

    def _chosen_keeper(self, namespace: str) -> Keeper:
        settings = self._settings
        if settings.certificates is not None or has_certificate(CERTIFICATES):
            return FileKeeper(settings.certificates or CERTIFICATES, self._served)
        secret = ObjectKey(namespace, settings.secret)
        hosts = settings.hosts(namespace)
        return SecretKeeper(self._client, secret, hosts, settings.configurations, self._served)

    async def run(self) -> int:
        """Until SIGTERM or SIGINT."""
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ending.set)
        await self.serve(ending)
        return 0

    async def serve(self, ending: asyncio.Event) -> None:
        """Until then."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._client)
            await self._start_side_servers(stack)
            keeping = asyncio.create_task(keep(self._keeper, self._heard))
            stack.callback(keeping.cancel)
            if await self._first_certificate(ending):
                await stack.enter_async_context(
                    listening(self._admission.app(), self._settings.server, self._served)
                )
                log.info("answering", port=self._settings.server.port)
                await ending.wait()
                self._is_leaving = True
                await asyncio.sleep(self._settings.leaving_seconds)

    async def _start_side_servers(self, stack: AsyncExitStack) -> None:
        settings = self._settings
        await stack.enter_async_context(
            serving(settings.health, health_routes(self.why_not_alive, self.why_not_ready))
        )
        guard = MetricsGuard(self._client).why_not if settings.metrics_secure else None
        tls = self_signed_context() if settings.metrics_secure and not settings.metrics.is_off else None
        await stack.enter_async_context(
            serving(settings.metrics, metrics_route(self._metrics.text, guard), tls)
        )

    async def _first_certificate(self, ending: asyncio.Event) -> bool:
        """Whether there was one before we were told to end."""
        waits = [asyncio.create_task(self._loaded.wait()), asyncio.create_task(ending.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return not ending.is_set()

    def _heard(self, trouble: str | None) -> None:
        self._trouble = trouble
        if self._served.expires_at is not None:
            self._metrics.certificate_expires_seconds.set(self._served.expires_at.timestamp())
        if self._served.is_ready:
            self._loaded.set()

    def why_not_alive(self) -> str | None:
        return None

    def why_not_ready(self) -> str | None:
        if self._is_leaving:
            return "On the way out."
        if not self._served.is_ready:
            return f"There is no certificate to serve with: {self._trouble}"
        return f"The certificate has run out: {self._trouble}" if self._served.is_expired else None


def answerers(look: Lookup, settings: Settings) -> Mapping[str, Answerer]:
    """Who answers where."""
    found: dict[str, Answerer] = {admission.SECRET_PATH: SecretGuard(look)}
    for one in settings.kinds:
        for version in one.versions:
            found[admission.path_of(one.kind, version)] = Judge(one.model, look, settings.namespaces)
    if settings.pods_binding:
        found[admission.BINDING_PATH] = TopologyHelper(look)
    return found
