"""HTTP to one API server: connections, identity, deadlines, waiting when asked to, errors in our words."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import Enum
from urllib.parse import quote, urlencode, urlsplit

import aiohttp

from slurm_operator import __version__, wire
from slurm_operator.backoff import backoff_seconds
from slurm_operator.http import messages
from slurm_operator.http.connection import Address, CannotConnect, connect
from slurm_operator.http.messages import Answer, NotHttp, TooLarge
from slurm_operator.http.places import Places
from slurm_operator.http.pool import Connections
from slurm_operator.http.streams import Stream
from slurm_operator.kube import errors
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.auth.credentials import Headers, Identity
from slurm_operator.kube.auth.tls import TlsContexts
from slurm_operator.kube.request import Request

_SHORTEST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0

# Inside one data centre compressing costs both sides more time than sending.
_OURS = {"User-Agent": f"slurm-operator/{__version__}", "Accept-Encoding": "identity"}

_SAFE_IN_PATHS = "/:@!$&'()*+,;=~%"

# Of what says why a watch does not begin.
_MAX_REFUSAL_BYTES = 1 << 24

# A call may wait for others so many times longer than for its own answer.
PATIENCE = 6


class Pool(Enum):
    """Connections for calls that must not wait for each other."""

    CALLS = "calls"
    LEASE = "lease"


class Call(wire.Record):
    """One request, for metrics: its code (0 when no answer came) and the seconds until the answer was there.

    Of a watch, until it began.
    """

    verb: str
    group: str
    resource: str
    code: int
    seconds: float


class Transport:
    """Sends requests. Use `async with`; outside of it there are no connections.

    Calls and watches have connections of our own, web sockets those of a general client.
    """

    def __init__(self, access: Access, on_call: Callable[[Call], None], connections: int) -> None:
        self._access = access
        self._on_call = on_call
        self._places = Places(connections)
        self._tls = TlsContexts(access.trust)
        self._server = urlsplit(access.server)
        self._address = Address.of(access.server, access.trust.server_name)
        self._calls: dict[Pool, Connections] = {}
        self._streams: set[Stream] = set()

    def open(self) -> None:
        self._calls = {pool: Connections(self._address) for pool in Pool}

    def close(self) -> None:
        for connections in self._calls.values():
            connections.close()
        self._calls.clear()
        for stream in self._streams:
            stream.abort()

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
        if pool is not Pool.CALLS:
            return await self._send(request, deadline_seconds, pool, may_send)
        await self._turn(request, PATIENCE * deadline_seconds, in_a_hurry=in_a_hurry)
        try:
            return await self._send(request, deadline_seconds, pool, may_send)
        finally:
            self._places.give()

    async def _turn(self, request: Request, seconds: float, *, in_a_hurry: bool) -> None:
        """A free connection. That a thousand calls wait for each other is not the server's silence."""
        if self._places.take_free():
            return
        try:
            async with asyncio.timeout(seconds):
                await self._places.take(in_a_hurry=in_a_hurry)
        except TimeoutError as error:
            raise errors.Timeout(f"{request}: no connection was free in time") from error

    async def _send(
        self, request: Request, deadline_seconds: float, pool: Pool, may_send: Callable[[], bool]
    ) -> bytes:
        clock = asyncio.get_running_loop().time
        identity = await self._access.credentials.identity()  # For which a person may have to log in.
        ends = clock() + deadline_seconds
        attempt = 0
        while True:
            try:
                return await self._with_fresh_identity(request, identity, pool, ends, may_send)
            except (errors.TooManyRequests, errors.ServerError) as refusal:
                if request.is_write and isinstance(refusal, errors.ServerError) and refusal.may_have_happened:
                    raise
                pause = _pause(refusal, attempt)
                if pause is None or clock() + pause >= ends:
                    raise
            attempt += 1
            await asyncio.sleep(pause)
            identity = await self._access.credentials.identity()

    async def _with_fresh_identity(
        self, request: Request, identity: Identity, pool: Pool, ends: float, may_send: Callable[[], bool]
    ) -> bytes:
        try:
            return await self._once(request, identity, pool, ends, may_send)
        except errors.Unauthorised:
            clock = asyncio.get_running_loop().time
            refused_at = clock()
            other = await self._identity_after(identity)
            if other == identity:
                raise
            return await self._once(request, other, pool, ends + clock() - refused_at, may_send)

    async def _identity_after(self, refused: Identity) -> Identity:
        """A newer identity than the one the server refused, if there is one; many may ask at once."""
        credentials = self._access.credentials
        if await credentials.identity() == refused:
            credentials.invalidate()
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
        answer = await self._answer(request, identity, pool, left, may_send)
        if not 200 <= answer.status < 300:
            raise _refusal(request, answer)
        return answer.body

    async def relay(
        self, request: Request, *, deadline_seconds: float, may_send: Callable[[], bool]
    ) -> tuple[int, bytes]:
        """Whatever answer comes, good or bad, with its code: it may be that of a server behind this one."""
        identity = await self._access.credentials.identity()
        answer = await self._answer(request, identity, Pool.CALLS, deadline_seconds, may_send)
        return answer.status, answer.body

    async def _answer(
        self, request: Request, identity: Identity, pool: Pool, seconds: float, may_send: Callable[[], bool]
    ) -> Answer:
        """Whatever answer comes in time. Every request is counted once."""

        def before_sending() -> None:
            # It may have waited for a connection longer than our lease lives.
            if not may_send():
                raise errors.NotLeader(f"{request} was not sent: the lease may be lost")

        started = asyncio.get_running_loop().time()
        connections, code = self._calls[pool], 0
        try:
            with _in_our_words(request, self._access.server):
                message = self._message(request, identity.headers)
                tls = self._context(identity)
                answer = await connections.exchange(
                    request.method, message, tls, before_sending, started + seconds
                )
            code = answer.status
            return answer
        except errors.Timeout:
            connections.drop_idle_since(started)
            raise
        finally:
            self._count(request, code, started)

    def _message(self, request: Request, identity: Headers) -> bytes:
        target = quote(self._server.path + request.path, safe=_SAFE_IN_PATHS)
        if request.params:
            target += "?" + urlencode(request.params)
        headers = [("Host", self._server.netloc), *_OURS.items(), *_headers(request, identity)]
        try:
            return messages.request(request.method, target, headers, request.body or b"")
        except ValueError as error:  # Of our own headers only the token comes from elsewhere.
            raise errors.ConfigProblem(f"{request} was not sent: {error}; see the token") from error

    @asynccontextmanager
    async def stream(
        self, request: Request, *, idle_seconds: float, connect_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body as it comes. Raises Timeout when nothing comes for so long, Unreachable when it breaks."""
        identity = await self._access.credentials.identity()
        started = asyncio.get_running_loop().time()
        code = 0
        try:
            with _in_our_words(request, self._access.server):
                async with self._stream(identity, connect_seconds) as stream:
                    head = await stream.begin(self._message(request, identity.headers), idle_seconds)
                    code = head.status
                    self._count(request, code, started)
                    if not 200 <= code < 300:
                        body = await stream.whole(idle_seconds, _MAX_REFUSAL_BYTES)
                        raise _refusal(request, Answer(head, body, is_last=True))
                    yield stream.pieces(idle_seconds)
        except errors.Unauthorised:
            await self._identity_after(identity)  # Who watches tries again anyway.
            raise
        finally:
            if not code:
                self._count(request, 0, started)

    @asynccontextmanager
    async def _stream(self, identity: Identity, connect_seconds: float) -> AsyncIterator[Stream]:
        async with asyncio.timeout(connect_seconds):
            stream = await connect(self._address, self._context(identity), Stream)
        self._streams.add(stream)
        try:
            yield stream
        finally:
            stream.abort()
            self._streams.discard(stream)

    async def messages(self, request: Request, protocol: str, *, deadline_seconds: float) -> list[bytes]:
        """What the other side of a web socket sends before it closes it."""
        identity = await self._access.credentials.identity()
        with _in_our_words(request, self._access.server):
            async with (
                asyncio.timeout(deadline_seconds),
                aiohttp.ClientSession(headers=_OURS) as session,
                session.ws_connect(
                    self._access.server + request.path,
                    protocols=(protocol,),
                    headers=_headers(request, identity.headers),
                    ssl=self._context(identity) or True,
                    server_hostname=self._access.trust.server_name or None,
                    max_msg_size=0,
                ) as socket,
            ):
                return [message.data async for message in socket if message.type is aiohttp.WSMsgType.BINARY]

    def _count(self, request: Request, code: int, started: float) -> None:
        took = asyncio.get_running_loop().time() - started
        verb, group, resource = request.verb, request.group, request.resource
        self._on_call(Call(verb=verb, group=group, resource=resource, code=code, seconds=took))

    def _context(self, identity: Identity) -> ssl.SSLContext | None:
        return self._tls.context(identity.certificate) if self._server.scheme == "https" else None


@contextmanager
def _in_our_words(request: Request, server: str) -> Iterator[None]:
    """What goes wrong below, as Timeout or Unreachable."""
    try:
        yield
    except aiohttp.WSServerHandshakeError as error:
        raise errors.from_body(error.status, b"", attempted=str(request), reason=error.message) from error
    except TimeoutError as error:
        raise errors.Timeout(
            f"{request}: no answer from {server} in time", may_have_happened=request.is_write
        ) from error
    except (CannotConnect, aiohttp.ClientConnectorError) as error:
        why = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.__cause__
        raise errors.Unreachable(f"{request}: {_no_connection(server, why)}") from error
    except (aiohttp.ClientError, OSError, EOFError, NotHttp, TooLarge) as error:
        raise errors.Unreachable(
            f"{request}: the connection to {server} broke: {_error_text(error)}",
            may_have_happened=request.is_write,
        ) from error


def _no_connection(server: str, why: BaseException | None) -> str:
    if isinstance(why, ssl.SSLCertVerificationError):
        return f"{server} is not who it should be: {_error_text(why)}"
    said = why.strerror if isinstance(why, OSError) else None
    return f"cannot connect to {server}: {said or _error_text(why)}"


def _error_text(error: BaseException | None) -> str:
    return str(error) or type(error).__name__


def _headers(request: Request, identity: Headers) -> list[tuple[str, str]]:
    headers = [("Accept", request.accept), *identity, *request.headers.items()]
    return [*headers, ("Content-Type", request.content_type)] if request.body is not None else headers


def _refusal(request: Request, answer: Answer) -> errors.ApiError:
    after = answer.head.headers.get(b"retry-after", b"").decode("latin-1")
    return errors.from_body(
        answer.status,
        answer.body,
        attempted=str(request),
        reason=answer.head.reason,
        retry_after=float(after) if after.isdecimal() else None,
    )


def _pause(refusal: errors.ApiError, attempt: int) -> float | None:
    """Seconds to wait before asking again, None when the server did not ask us to."""
    if isinstance(refusal, errors.BudgetRefused):
        return None  # Not about load: only a change of the pods will help.
    if refusal.retry_after is None and not isinstance(refusal, errors.TooManyRequests):
        return None
    least = backoff_seconds(
        attempt, first_seconds=_SHORTEST_PAUSE_SECONDS, longest_seconds=_LONGEST_PAUSE_SECONDS
    )
    return max(refusal.retry_after or 0.0, least) * random.uniform(1.0, 1.25)  # noqa: S311  No secret in it.
