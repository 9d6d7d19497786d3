"""Bytes arrive as they were sent, with and without TLS, however much there is and however slow the other side."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from slurm_local.kubernetes.commands import Certificates
from slurm_operator.http.links import Address, CannotConnect, Link, connected

# More than sockets hold, so that sending has to wait.
MUCH = bytes(range(256)) * 65536

Contexts = tuple[ssl.SSLContext | None, ssl.SSLContext | None]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Heard:
    """One end of a link, and all that it was told."""

    def __init__(self) -> None:
        self.data = b""
        self.turns = 0
        self.ends: list[Exception | None] = []
        self._changed = asyncio.Event()

    def hear(self, data: bytes) -> None:
        self.data += data
        self.turns += 1
        self._changed.set()

    def end(self, why: Exception | None) -> None:
        self.ends.append(why)
        self._changed.set()

    async def until(self, holds: Callable[["Heard"], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("pki"), addresses=())


@pytest.fixture(params=["plain", "tls"])
def contexts(request: pytest.FixtureRequest, pki: Certificates) -> Contexts:
    return (None, None) if request.param == "plain" else (theirs(pki), ours(pki.ca))


def theirs(pki: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.api_server.certificate, pki.api_server.key)
    return context


def ours(ca: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(ca))


@asynccontextmanager
async def serving(serve: Serve, tls: ssl.SSLContext | None) -> AsyncIterator[Address]:
    done = asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            await serve(reader, writer)
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
        done.set()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1], "127.0.0.1")
        async with asyncio.timeout(60):
            await done.wait()
    finally:
        server.close()
        await server.wait_closed()


async def test_what_is_sent_to_a_slow_reader_arrives_whole_and_so_does_its_answer(
    contexts: Contexts,
) -> None:
    async def echo_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)  # Until then the sender's buffers are full.
        received = await reader.readexactly(2 * len(MUCH))
        writer.write(received[::-1])
        await writer.drain()

    heard = Heard()
    async with serving(echo_late, contexts[0]) as address:
        link = Link(await connected(address, contexts[1]), heard.hear, heard.end)
        link.write(MUCH)
        link.write(MUCH)
        await heard.until(lambda it: bool(it.ends))

    assert heard.data == (MUCH + MUCH)[::-1]
    assert (heard.ends, link.is_open) == ([None], False)


async def test_both_sides_may_send_much_at_the_same_time(
    contexts: Contexts,
) -> None:
    received = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(MUCH)
        received.append(await reader.readexactly(len(MUCH)))
        await writer.drain()

    heard = Heard()
    async with serving(talk, contexts[0]) as address:
        link = Link(await connected(address, contexts[1]), heard.hear, heard.end)
        link.write(MUCH)
        await heard.until(lambda it: bool(it.ends))

    assert heard.data == MUCH
    assert received == [MUCH]


async def test_what_comes_during_a_rest_is_heard_at_once_afterwards(
    contexts: Contexts,
) -> None:
    all_sent = asyncio.Event()

    async def drops(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        for _ in range(20):
            writer.write(b"drop")
            await writer.drain()
        all_sent.set()
        await reader.read()

    heard = Heard()
    async with serving(drops, contexts[0]) as address:
        link = Link(await connected(address, contexts[1]), heard.hear, heard.end)
        link.rest(0.3)
        link.write(b"!")
        await all_sent.wait()
        before = heard.turns
        await heard.until(lambda it: len(it.data) == 80)
        link.abort()

    assert before == 0
    assert heard.turns <= 3  # TLS says something about itself first.
    assert heard.ends == [], "who aborts it knows"


async def test_a_connection_that_is_reset_ends_with_its_error() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await reader.readexactly(1)

    heard = Heard()
    async with serving(reset, None) as address:
        link = Link(await connected(address, None), heard.hear, heard.end)
        link.write(b"!")
        await heard.until(lambda it: bool(it.ends))

    assert isinstance(heard.ends[0], ConnectionResetError)
    assert not link.is_open


async def test_a_server_that_lost_its_power_is_missed_within_a_minute(contexts: Contexts) -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(wait, contexts[0]) as address:
        with await connected(address, contexts[1]) as found:
            is_asked = found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            after, every, times = (
                found.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )

    assert is_asked
    assert after + every * times < 60


async def test_a_server_that_nobody_vouches_for_is_not_talked_to(pki: Certificates, tmp_path: Path) -> None:
    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    others = Certificates(tmp_path / "other", addresses=())
    server = await asyncio.start_server(read, "127.0.0.1", 0, ssl=theirs(pki))
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(CannotConnect) as caught:
            await connected(Address("127.0.0.1", port, "127.0.0.1"), ours(others.ca))

    assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)


async def test_a_handshake_that_does_not_come_leaves_nothing_behind(pki: Certificates) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = Address("127.0.0.1", listening.getsockname()[1], "127.0.0.1")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await connected(address, ours(pki.ca))
        accepted, _ = listening.accept()
        with accepted:
            accepted.settimeout(10)
            while accepted.recv(65536):
                pass  # Its first words; then it hangs up.


@pytest.mark.parametrize(
    ("server", "server_name", "expected"),
    [
        ("https://10.0.0.1", "", ("10.0.0.1", 443, "10.0.0.1")),
        ("https://[fd00::1]:6443", "", ("fd00::1", 6443, "fd00::1")),
        ("http://api", "", ("api", 80, "api")),
        ("https://10.0.0.1:6443/prefix", "kubernetes", ("10.0.0.1", 6443, "kubernetes")),
    ],
)
def test_where_a_server_is(server: str, server_name: str, expected: tuple[str, int, str]) -> None:
    assert Address.of(server, server_name) == expected
