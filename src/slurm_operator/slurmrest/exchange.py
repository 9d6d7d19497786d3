"""One HTTP request and its answer on a connection of its own, byte by byte.

slurmrestd does not keep to HTTP closely enough for a general client. Asked to close the connection it puts
the header behind the body, and when the database is away it answers the same request twice. So exactly one
answer is read, and whatever comes after it is nobody's business. A connection of its own for each call also
means that what could not connect was surely not sent.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from slurm_operator.http import http1

CONNECT_SECONDS = 3.0

_PIECE_BYTES = 1 << 18


class Reply(NamedTuple):
    status: int
    body: bytes


class NoConnection(Exception):  # noqa: N818 - it says what is the case
    """Nobody took the call; nothing was sent."""


async def exchange(
    url: str, method: str, target: str, headers: Mapping[str, str], body: bytes, max_bytes: int
) -> Reply:
    """The answer to one request. EOFError when it ends too early, NotHttp and TooLarge when it is none."""
    parts, port = _where(url)
    asked = http1.request(method, target, [("Host", parts.netloc), *headers.items()], body)
    reader, writer = await _connect(parts, port)
    try:
        writer.write(asked)
        await writer.drain()
        return await _answer(reader, method, max_bytes)
    finally:
        # Not `close`, which would wait for a hung slurmrestd to take the rest of the request.
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _where(url: str) -> tuple[SplitResult, int]:
    try:
        parts = urlsplit(url)
        return parts, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise NoConnection(f"{url} is no address: {error}") from error


async def _connect(parts: SplitResult, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url, tls = parts.geturl(), _tls() if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(parts.hostname, port, ssl=tls)
    except TimeoutError as error:
        raise NoConnection(f"{url} took no connection for {CONNECT_SECONDS:g} s") from error
    except (OSError, ValueError) as error:
        raise NoConnection(f"no connection to {url}: {error}") from error


@cache
def _tls() -> ssl.SSLContext:
    """Made once: reading the machine's certificates takes a while."""
    return ssl.create_default_context()


async def _answer(reader: asyncio.StreamReader, method: str, max_bytes: int) -> Reply:
    reading = http1.Reading(method, max_bytes)
    answer = None
    while answer is None:
        data = await reader.read(_PIECE_BYTES)
        answer = reading.feed(data) if data else reading.end()
    return Reply(answer.status, answer.body)
