"""One HTTP request to slurmrestd and its answer, on a connection of its own.

slurmrestd does not keep to HTTP closely enough for a general client. Asked to close the connection it puts
the header behind the body, and when the database is away it answers the same request twice. So exactly one
answer is read, and whatever comes after it is nobody's business. A connection of its own for each call also
means that what could not connect was surely not sent.
"""

import asyncio
import ssl
from collections.abc import Mapping
from functools import cache, partial
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from slurm_operator.http import messages
from slurm_operator.http.calls import CallConnection
from slurm_operator.http.connection import Address, CannotConnect, connect

CONNECT_SECONDS = 3.0


class Reply(NamedTuple):
    status: int
    body: bytes


class NoConnection(Exception):  # noqa: N818 - it says what is the case
    """Nobody took the call; nothing was sent."""


async def exchange(
    url: str, method: str, target: str, headers: Mapping[str, str], body: bytes, max_bytes: int
) -> Reply:
    """The answer to one request. EOFError when it ends too early, NotHttp and TooLarge when it is none."""
    parts, address = _where(url)
    asked = messages.request(method, target, [("Host", parts.netloc), *headers.items()], body)
    connection = await _connect(parts, address, max_bytes)
    try:
        answer = await connection.exchange(method, asked)
    finally:
        connection.abort()  # Without waiting for a hung slurmrestd to take the rest of the request.
    return Reply(answer.status, answer.body)


def _where(url: str) -> tuple[SplitResult, Address]:
    try:
        return urlsplit(url), Address.of(url)
    except ValueError as error:
        raise NoConnection(f"{url} is no address: {error}") from error


async def _connect(parts: SplitResult, address: Address, max_bytes: int) -> CallConnection:
    url, tls = parts.geturl(), _tls() if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await connect(address, tls, partial(CallConnection, tls, max_bytes))
    except TimeoutError as error:
        raise NoConnection(f"{url} took no connection for {CONNECT_SECONDS:g} s") from error
    except (CannotConnect, ValueError) as error:
        raise NoConnection(f"no connection to {url}: {error.__cause__ or error}") from error


@cache
def _tls() -> ssl.SSLContext:
    """Made once: reading the machine's certificates takes a while."""
    return ssl.create_default_context()
