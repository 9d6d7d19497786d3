"""One HTTP request to slurmrestd and its answer, on a connection of its own.

slurmrestd does not keep to HTTP closely enough for a general client. Asked to close the connection it puts
the header behind the body, and when the database is away it answers the same request twice. So exactly one
answer is read, and whatever comes after it is nobody's business. A connection of its own for each call also
means that what could not connect was surely not sent.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from slurm_operator.http import messages
from slurm_operator.http.calls import CallConnection
from slurm_operator.http.connection import Address, CannotConnect, Connection, connect
from slurm_operator.http.streams import Download

CONNECT_SECONDS = 3.0

C = TypeVar("C", bound=Connection)

# So much of a large answer is read at once: a few milliseconds of work.
PIECE_BYTES = 1 << 18


class Reply(NamedTuple):
    """Of an answer that somebody takes in pieces `body` is the last one."""

    status: int
    body: bytes


class Taker(Protocol):
    """Takes the body of a good answer while it arrives."""

    async def take(self, piece: bytes) -> None: ...


class NoConnection(Exception):  # noqa: N818 - it says what is the case
    """Nobody took the call; nothing was sent."""


async def exchange(
    url: str,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    max_bytes: int,
    authorities: str = "",
) -> Reply:
    """The answer to one request. EOFError when it ends too early, NotHttp and TooLarge when it is none.

    `authorities` are the certificates that vouch for an https address, instead of those of the machine.
    """
    parts, address = _where(url)
    connection = await _connect(parts, address, authorities, lambda tls: CallConnection(tls, max_bytes))
    try:
        answer = await connection.exchange(method, _request(parts, method, target, headers, body))
    finally:
        connection.abort()  # Without waiting for a hung slurmrestd to take the rest of the request.
    return Reply(answer.status, answer.body)


async def download(
    url: str,
    target: str,
    headers: Mapping[str, str],
    taker: Taker,
    *,
    max_bytes: int,
    max_other_bytes: int,
    authorities: str = "",
) -> Reply:
    """The same for a large answer, of which `taker` gets all but the last piece while it arrives.

    Whatever is no success comes whole, and is short.
    """
    parts, address = _where(url)
    connection = await _connect(parts, address, authorities, lambda _: Download(max_bytes))
    try:
        head = await connection.begin(_request(parts, "GET", target, headers, b""), None)
        if not 200 <= head.status < 300:
            return Reply(head.status, await connection.whole(None, max_other_bytes))
        waiting: list[bytes] = []
        size = 0
        async for piece in connection.pieces(None):
            waiting.append(piece)
            size += len(piece)
            if size > max_bytes:
                raise messages.TooLarge(f"more than {max_bytes} bytes are not allowed")
            if sum(map(len, waiting)) >= PIECE_BYTES:
                await taker.take(b"".join(waiting))
                waiting.clear()
        return Reply(head.status, b"".join(waiting))
    finally:
        connection.abort()


def _request(parts: SplitResult, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    return messages.request(method, target, [("Host", parts.netloc), *headers.items()], body)


def _where(url: str) -> tuple[SplitResult, Address]:
    try:
        return urlsplit(url), Address.of(url)
    except ValueError as error:
        raise NoConnection(f"{url} is no address: {error}") from error


async def _connect(
    parts: SplitResult, address: Address, authorities: str, make: Callable[[ssl.SSLContext | None], C]
) -> C:
    url, tls = parts.geturl(), _tls(authorities) if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await connect(address, tls, partial(make, tls))
    except TimeoutError as error:
        raise NoConnection(f"{url} took no connection for {CONNECT_SECONDS:g} s") from error
    except (CannotConnect, ValueError) as error:
        raise NoConnection(f"no connection to {url}: {error.__cause__ or error}") from error


@lru_cache(maxsize=64)
def _tls(authorities: str) -> ssl.SSLContext:
    """Kept: reading the machine's certificates takes a while."""
    try:
        return ssl.create_default_context(cadata=authorities or None)
    except (ssl.SSLError, ValueError) as error:
        raise NoConnection(f"the certificates that are to vouch for it cannot be read: {error}") from error
