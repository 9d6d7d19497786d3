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
from urllib.parse import urlsplit

CONNECT_SECONDS = 3.0

_MAX_HEAD_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20


class Reply(NamedTuple):
    status: int
    body: bytes


class NotHttp(Exception):  # noqa: N818 - it says what is the case
    """What came back is no answer."""


class TooLarge(Exception):  # noqa: N818
    """The answer is larger than anybody wanted."""


class NoConnection(Exception):  # noqa: N818
    """Nobody took the call; nothing was sent."""


async def exchange(
    url: str, method: str, target: str, headers: Mapping[str, str], body: bytes, max_bytes: int
) -> Reply:
    """The answer to one request. EOFError when it ends too early."""
    reader, writer = await _connect(url)
    try:
        writer.write(_request(url, method, target, headers, body))
        await writer.drain()
        return await _reply(reader, max_bytes)
    finally:
        # Not `close`, which would wait for a hung slurmrestd to take the rest of the request.
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    tls = _tls() if parts.scheme == "https" else None
    port = parts.port or (443 if tls else 80)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(parts.hostname, port, ssl=tls, limit=_MAX_HEAD_BYTES)
    except TimeoutError as error:
        raise NoConnection(f"{url} took no connection for {CONNECT_SECONDS:g} s") from error
    except (OSError, ValueError) as error:
        raise NoConnection(f"no connection to {url}: {error}") from error


@cache
def _tls() -> ssl.SSLContext:
    """Made once: reading the machine's certificates takes a while."""
    return ssl.create_default_context()


def _request(url: str, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    wanted = {"Host": urlsplit(url).netloc, **headers}
    if body:
        wanted["Content-Length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in wanted.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _reply(reader: asyncio.StreamReader, max_bytes: int) -> Reply:
    status, headers = await _head(reader)
    while 100 <= status < 200:
        status, headers = await _head(reader)
    if status in (204, 304):
        return Reply(status, b"")
    if headers.get("transfer-encoding", "").lower() == "chunked":  # A proxy's, slurmrestd has none.
        return Reply(status, await _chunked(reader, max_bytes))
    if "content-length" in headers:
        return Reply(status, await reader.readexactly(_bounded(headers["content-length"], 10, max_bytes)))
    return Reply(status, await _until_end(reader, max_bytes))


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    try:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
    except asyncio.LimitOverrunError as error:
        raise NotHttp("no end of its headers") from error
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise NotHttp(f"it begins with {first[:100]!r}")
    pairs = (line.partition(":") for line in lines)
    return int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in pairs}


def _bounded(digits: str, base: int, max_bytes: int) -> int:
    try:
        size = int(digits, base)
    except ValueError as error:
        raise NotHttp(f"a length of {digits[:20]!r}") from error
    if not 0 <= size <= max_bytes:
        raise TooLarge(f"{size} bytes, {max_bytes} are allowed")
    return size


async def _chunked(reader: asyncio.StreamReader, max_bytes: int) -> bytes:
    body = bytearray()
    while True:
        line = (await reader.readuntil(b"\r\n")).decode("latin-1")
        size = _bounded(line.partition(";")[0].strip(), 16, max_bytes - len(body))
        if size == 0:
            return bytes(body)
        body += await reader.readexactly(size)
        await reader.readexactly(2)


async def _until_end(reader: asyncio.StreamReader, max_bytes: int) -> bytes:
    body = bytearray()
    while chunk := await reader.read(_CHUNK_BYTES):
        body += chunk
        _bounded(str(len(body)), 10, max_bytes)
    return bytes(body)
