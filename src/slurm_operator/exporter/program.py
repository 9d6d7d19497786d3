"""The whole exporter: two small servers, and Slurm read in the background until it is told to stop."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
from aiohttp import web

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.clock import Clock, SystemClock
from slurm_operator.exporter import topology
from slurm_operator.exporter.collecting import Collector, Plan
from slurm_operator.exporter.login import NoToken, ScontrolToken, SecretKey, SecretTokens, TokenFile, key_file
from slurm_operator.exporter.options import Options
from slurm_operator.exporter.reading import Reading
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError
from slurm_operator.kube.watch.named_objects import read_secret
from slurm_operator.runtime.serve import Handler, health_routes, serving
from slurm_operator.runtime.settings import Address
from slurm_operator.slurmrest.errors import SlurmUnauthorised
from slurm_operator.slurmrest.session import Session
from slurm_operator.slurmrest.tokens import ReadyToken, Tokens, TokenSource
from slurm_operator.slurmrest.transport import Transport

log = structlog.get_logger(__name__)

# Where Soperator keeps the key that slurmrestd's tokens are signed with.
KEY_SECRET: Final = "{cluster}-rest-jwt-key"  # noqa: S105 - the name of a Secret
KEY_ENTRY: Final = "rest_jwt.key"

# A list of 10,000 jobs takes slurmrestd seconds to write. A call that hangs holds up its own part only.
_DEADLINE_SECONDS: Final = 60.0

_RENEW_SECONDS: Final = 5.0
_TEXT: Final = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
BROKEN: Final = 1


@dataclass(frozen=True)
class Login:
    """How to log in to slurmrestd. The first of these that is given."""

    token_file: Path | None = None
    key_file: Path | None = None
    static_token: str = ""
    is_standalone: bool = False
    scontrol: str = "scontrol"
    rotation_seconds: float = 1800.0
    user: str = "slurm"


@dataclass(frozen=True)
class Settings:
    """How one exporter runs."""

    plan: Plan
    namespace: str = "soperator"
    urls: tuple[str, ...] = ("http://localhost:6820",)
    options: Options = field(default_factory=Options)
    login: Login = field(default_factory=Login)
    metrics: Address = field(default_factory=lambda: Address("0.0.0.0", 8080))
    monitoring: Address = field(default_factory=lambda: Address("0.0.0.0", 8081))


class Program:
    """One running exporter. `access` is the API server, where there is one."""

    def __init__(self, settings: Settings, access: Access | None, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._client = Client(access, may_write=lambda: False) if access is not None else None
        self._kube_key = SecretKey(self._read_kube_key)
        self._scontrol: ScontrolToken | None = None
        deadline = max(_DEADLINE_SECONDS, settings.plan.interval_seconds)
        session = Session(Transport(settings.urls, deadline_s=deadline), self._tokens())
        places = partial(topology.places, self._client) if self._client is not None else None
        self.collector = Collector(Reading(session), settings.plan, settings.options, self._clock, places)

    async def run(self) -> int:
        """Until SIGTERM or SIGINT (0), or until a part of us breaks (1)."""
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ending.set)
        async with AsyncExitStack() as stack:
            if self._client is not None:
                await stack.enter_async_context(self._client)
            await self._renewed()
            await stack.enter_async_context(serving(self._settings.metrics, self._routes()))
            await stack.enter_async_context(serving(self._settings.monitoring, self._self_routes()))
            parts = [self.collector.run(), self._keep_renewed(), ending.wait()]
            tasks: list[asyncio.Task[Any]] = [asyncio.create_task(part) for part in parts]
            stack.push_async_callback(_ended, tasks)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if ending.is_set():
                return 0
            broken = next(task for task in tasks if task.done())
            log.critical("a part of the exporter broke", exc_info=broken.exception())
            return BROKEN

    def _routes(self) -> dict[str, Handler]:
        async def metrics(_request: web.Request) -> web.StreamResponse:
            return web.Response(body=await self.collector.page(), headers=_TEXT)

        async def health(_request: web.Request) -> web.StreamResponse:
            return web.Response(text="healthy")

        return {"/metrics": metrics, "/health": health}

    def _self_routes(self) -> dict[str, Handler]:
        async def metrics(_request: web.Request) -> web.StreamResponse:
            return web.Response(body=await self.collector.self_page(), headers=_TEXT)

        return {"/metrics": metrics, **health_routes(lambda: None, self.collector.why_not_ready)}

    def _tokens(self) -> Tokens:
        """What was given wins over what is found."""
        login = self._settings.login
        if login.token_file is not None:
            return TokenFile(login.token_file)
        if login.static_token:
            return ReadyToken(login.static_token)
        if login.key_file is not None:
            return self._signing(key_file(login.key_file))
        if login.is_standalone:
            seconds = login.rotation_seconds
            self._scontrol = ScontrolToken(login.scontrol, login.user, seconds, self._clock)
            return self._scontrol
        if self._client is not None:
            return SecretTokens(self._kube_key, now=self._clock.now, user=login.user)
        log.warning("no token, no key and no API server were given: slurmrestd is asked without a token")
        return NoToken()

    def _signing(self, key: Callable[[], bytes]) -> TokenSource:
        return TokenSource(key, now=self._clock.now, user=self._settings.login.user)

    async def _keep_renewed(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            await self._renewed()

    async def _renewed(self) -> None:
        """The token of scontrol, or the key in Soperator's Secret; what was good stays where that fails."""
        if self._scontrol is not None:
            with contextlib.suppress(SlurmUnauthorised):
                await self._scontrol.renew()
        login = self._settings.login
        if login == Login(user=login.user, scontrol=login.scontrol, rotation_seconds=login.rotation_seconds):
            await self._kube_key.renew()

    async def _read_kube_key(self) -> bytes:
        """What is in the Secret now; empty where it cannot be read."""
        if self._client is None:
            return b""
        secret = KEY_SECRET.format(cluster=self._settings.plan.cluster)
        key = ObjectKey(self._settings.namespace, secret)
        try:
            return (await read_secret(self._client, key)).get(KEY_ENTRY, b"")
        except KubeError as error:
            log.warning("cannot read the key for Slurm's tokens", secret=str(key), error=str(error))
            return b""


async def _ended(tasks: list["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
