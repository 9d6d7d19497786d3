"""HTTP to one API server: connections, identity, deadlines, waiting when asked to, errors in our words."""

import asyncio
import asyncio.sslproto
import io
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any

import aiohttp

from slurm_operator import __version__, wire
from slurm_operator.kube import errors
from slurm_operator.kube.access import Access
from slurm_operator.kube.credentials import Headers, Identity
from slurm_operator.kube.places import Places
from slurm_operator.kube.request import READS, Request
from slurm_operator.kube.tls import TlsContexts

_SHORTEST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_LARGE_BYTES = 256 * 1024

# What asyncio reads from TLS at a time. Every connection keeps a buffer of that size, and every reading asks
# for one more: with the 256 KB of the standard library fifty connections hold 12 MB, and reading is dearer.
_TLS_BYTES = 32 * 1024

# A call may wait for others so many times longer than for its own answer.
PATIENCE = 6


class Pool(Enum):
    """Connections that must not wait for each other."""

    CALLS = "calls"
    WATCHES = "watches"
    LEASE = "lease"


class Call(wire.Record):
    """One request, for metrics: its code (0 when no answer came) and the seconds until the answer began."""

    verb: str
    resource: str
    code: int
    seconds: float


# Asked in the moment of sending: a request may have waited for a connection longer than our lease lives.
_may_send: ContextVar[Callable[[], bool]] = ContextVar("may_send", default=lambda: True)


class _HeldBackRequest(aiohttp.ClientRequest):
    """Asks once more, when a connection is there and only the sending is left."""

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        if refusal := self._refusal():
            raise refusal
        return await super().send(conn)

    async def write_bytes(self, writer: Any, conn: Any, content_length: int | None = None) -> None:
        """Headers and body leave together, and that may be a round of the event loop after `send`."""
        if refusal := self._refusal():
            conn.protocol.set_exception(refusal)  # Whoever waits for the answer hears it.
            return
        await super().write_bytes(writer, conn, content_length)

    def _refusal(self) -> errors.NotLeader | None:
        if self.method in READS or _may_send.get()():
            return None
        return errors.NotLeader(f"{self.method} {self.url.path} was not sent: the lease may be lost")


class Transport:
    """Sends requests. Use `async with`; outside of it there are no connections."""

    def __init__(self, access: Access, on_call: Callable[[Call], None], connections: int) -> None:
        self._access = access
        self._on_call = on_call
        self._connections = {Pool.CALLS: connections, Pool.WATCHES: 0, Pool.LEASE: 2}  # 0 is no limit
        self._places = Places(connections)
        self._tls = TlsContexts(access.trust)
        self._sessions: dict[Pool, aiohttp.ClientSession] = {}

    def open(self) -> None:
        asyncio.sslproto.SSLProtocol.max_size = _TLS_BYTES
        self._sessions = {pool: _session(limit) for pool, limit in self._connections.items()}

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()
        for _ in range(3):
            await asyncio.sleep(0)  # What was aborted is closed by the event loop in its next rounds.

    async def send(
        self,
        request: Request,
        *,
        deadline_seconds: float,
        pool: Pool = Pool.CALLS,
        may_send: Callable[[], bool] = lambda: True,
        in_a_hurry: bool = False,
    ) -> bytes:
        """The body of the answer. Waits and tries again when asked to, until the deadline."""
        async with self._turn(request, pool, PATIENCE * deadline_seconds, in_a_hurry=in_a_hurry):
            return await self._send(request, deadline_seconds, pool, may_send)

    @asynccontextmanager
    async def _turn(
        self, request: Request, pool: Pool, seconds: float, *, in_a_hurry: bool
    ) -> AsyncIterator[None]:
        """A free connection. That a thousand calls wait for each other is not the server's silence."""
        if pool is not Pool.CALLS:
            yield
            return
        try:
            async with asyncio.timeout(seconds):
                await self._places.take(in_a_hurry=in_a_hurry)
        except TimeoutError as error:
            raise errors.Timeout(f"{request}: no connection was free in time") from error
        try:
            yield
        finally:
            self._places.give()

    async def _send(
        self, request: Request, deadline_seconds: float, pool: Pool, may_send: Callable[[], bool]
    ) -> bytes:
        clock = asyncio.get_running_loop().time
        ends = clock() + deadline_seconds
        attempt = 0
        while True:
            try:
                return await self._with_fresh_identity(request, pool, ends, may_send)
            except (errors.TooManyRequests, errors.ServerError) as refusal:
                pause = _pause(refusal, attempt)
                if pause is None or clock() + pause >= ends:
                    raise
            attempt += 1
            await asyncio.sleep(pause)

    async def _with_fresh_identity(
        self, request: Request, pool: Pool, ends: float, may_send: Callable[[], bool]
    ) -> bytes:
        identity = await self._access.credentials.identity()
        try:
            return await self._once(request, identity, pool, ends, may_send)
        except errors.Unauthorised:
            other = await self._identity_after(identity)
            if other == identity:
                raise
            return await self._once(request, other, pool, ends, may_send)

    async def _identity_after(self, refused: Identity) -> Identity:
        """A newer identity than the one the server refused, if there is one; many may ask at once."""
        credentials = self._access.credentials
        if await credentials.identity() == refused:
            credentials.distrust()
        return await credentials.identity()

    async def _once(
        self,
        request: Request,
        identity: Identity,
        pool: Pool,
        ends: float,
        may_send: Callable[[], bool],
    ) -> bytes:
        left = max(ends - asyncio.get_running_loop().time(), 0.001)
        asked = _may_send.set(may_send)
        try:
            limits = aiohttp.ClientTimeout(total=left)
            async with self._answer(request, identity, pool, limits) as response:
                return await response.read()
        finally:
            _may_send.reset(asked)

    async def relay(
        self, request: Request, *, deadline_seconds: float, may_send: Callable[[], bool]
    ) -> tuple[int, bytes]:
        """Whatever answer comes, good or bad, with its code: it may be that of a server behind this one."""
        identity = await self._access.credentials.identity()
        asked = _may_send.set(may_send)
        try:
            limits = aiohttp.ClientTimeout(total=deadline_seconds)
            async with self._answer(request, identity, Pool.CALLS, limits, is_relayed=True) as response:
                return response.status, await response.read()
        finally:
            _may_send.reset(asked)

    @asynccontextmanager
    async def stream(
        self, request: Request, *, idle_seconds: float, connect_seconds: float
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """The body as it comes. Raises Timeout when nothing comes for so long, Unreachable when it breaks."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds, sock_read=idle_seconds)
        identity = await self._access.credentials.identity()
        try:
            async with self._answer(request, identity, Pool.WATCHES, limits) as response:
                try:
                    yield response.content
                finally:
                    _cut(response)
        except errors.Unauthorised:
            await self._identity_after(identity)  # Who watches tries again anyway.
            raise

    async def messages(self, request: Request, protocol: str, *, deadline_seconds: float) -> list[bytes]:
        """What the other side of a web socket sends before it closes it."""
        identity = await self._access.credentials.identity()
        async with (
            _in_our_words(request, self._access.server),
            asyncio.timeout(deadline_seconds),
            self._sessions[Pool.WATCHES].ws_connect(
                self._access.server + request.path,
                protocols=(protocol,),
                headers=_headers(request, identity.headers),
                ssl=self._tls.context(identity.certificate) if self._is_tls else True,
                server_hostname=self._access.trust.server_name or None,
                max_msg_size=0,
            ) as socket,
        ):
            return [message.data async for message in socket if message.type is aiohttp.WSMsgType.BINARY]

    @asynccontextmanager
    async def _answer(
        self,
        request: Request,
        identity: Identity,
        pool: Pool,
        limits: aiohttp.ClientTimeout,
        *,
        is_relayed: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response of 2xx, or any that is relayed. All else is raised as one of our errors.

        Every request is counted once.
        """
        started = asyncio.get_running_loop().time()
        code = 0
        try:
            async with (
                _in_our_words(request, self._access.server),
                self._sessions[pool].request(
                    request.method,
                    self._access.server + request.path,
                    params=request.params,
                    data=_in_pieces(request.body),
                    headers=_headers(request, identity.headers),
                    ssl=self._tls.context(identity.certificate) if self._is_tls else True,
                    server_hostname=self._access.trust.server_name or None,
                    timeout=limits,
                    allow_redirects=False,
                ) as response,
            ):
                code = response.status
                self._count(request, code, started)
                if not 200 <= code < 300 and not is_relayed:
                    raise _refusal(request, response, await response.read())
                yield response
        finally:
            if not code:
                self._count(request, 0, started)

    def _count(self, request: Request, code: int, started: float) -> None:
        took = asyncio.get_running_loop().time() - started
        self._on_call(Call(verb=request.verb, resource=request.resource, code=code, seconds=took))

    @property
    def _is_tls(self) -> bool:
        return self._access.server.startswith("https:")


@asynccontextmanager
async def _in_our_words(request: Request, server: str) -> AsyncIterator[None]:
    """What the HTTP library raises, as Timeout or Unreachable."""
    try:
        yield
    except aiohttp.WSServerHandshakeError as error:
        raise errors.from_body(error.status, b"", attempted=str(request), reason=error.message) from error
    except TimeoutError as error:
        raise errors.Timeout(
            f"{request}: no answer from {server} in time", may_have_happened=request.is_write
        ) from error
    except aiohttp.ClientConnectorCertificateError as error:
        why = _said(error.certificate_error)
        raise errors.Unreachable(f"{request}: {server} is not who it should be: {why}") from error
    except aiohttp.ClientConnectorError as error:
        why = error.strerror or _said(error.os_error)
        raise errors.Unreachable(f"{request}: cannot connect to {server}: {why}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise errors.Unreachable(
            f"{request}: the connection to {server} broke: {_said(error)}", may_have_happened=request.is_write
        ) from error


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _session(limit: int) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, keepalive_timeout=60, ttl_dns_cache=30),
        cookie_jar=aiohttp.DummyCookieJar(),
        request_class=_HeldBackRequest,
        # Inside one data centre compressing costs both sides more time than sending.
        headers={"User-Agent": f"slurm-operator/{__version__}", "Accept-Encoding": "identity"},
    )


def _headers(request: Request, identity: Headers) -> list[tuple[str, str]]:
    headers = [("Accept", request.accept), *identity, *request.headers.items()]
    return [*headers, ("Content-Type", request.content_type)] if request.body is not None else headers


def _cut(response: aiohttp.ClientResponse) -> None:
    """Ends a stream that is not over. No goodbye: the other side may be gone, and has nothing to add."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


def _in_pieces(body: bytes | None) -> bytes | io.BytesIO | None:
    """A large body is sent bit by bit, so that other requests get their turn."""
    return io.BytesIO(body) if body is not None and len(body) > _LARGE_BYTES else body


def _refusal(request: Request, response: aiohttp.ClientResponse, body: bytes) -> errors.ApiError:
    after = response.headers.get("Retry-After", "")
    return errors.from_body(
        response.status,
        body,
        attempted=str(request),
        reason=response.reason or "",
        retry_after=float(after) if after.isdecimal() else None,
    )


def _pause(refusal: errors.ApiError, attempt: int) -> float | None:
    """Seconds to wait before asking again, None when the server did not ask us to."""
    if isinstance(refusal, errors.BudgetRefused):
        return None  # Not about load: only a change of the pods will help.
    if refusal.retry_after is None and not isinstance(refusal, errors.TooManyRequests):
        return None
    least: float = min(_SHORTEST_PAUSE_SECONDS * 2**attempt, _LONGEST_PAUSE_SECONDS)
    return max(refusal.retry_after or 0.0, least) * random.uniform(1.0, 1.25)  # noqa: S311  No secret in it.
