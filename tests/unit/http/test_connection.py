"""Bytes arrive as they were sent, with and without TLS, however much there is and however slow the other side."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest
from OpenSSL import SSL

from slurm_local.kubernetes.commands import Certificates
from slurm_operator.http.connection import Address, CannotConnect, Connection, connect

pytestmark = pytest.mark.both_loops

# More than sockets hold, so that sending has to wait.
MUCH = bytes(range(256)) * 65536

Contexts = tuple[ssl.SSLContext | None, ssl.SSLContext | None]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Heard(Connection):
    """One end of a connection, and all that it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()
        self.ends: list[Exception | None] = []
        self._changed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.data += data
        self._changed.set()

    def ended(self, why: Exception | None) -> None:
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


async def test_what_is_sent_to_a_slow_reader_arrives_whole_and_so_does_its_answer(contexts: Contexts) -> None:
    async def echo_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)  # Until then the sender's buffers are full.
        received = await reader.readexactly(2 * len(MUCH))
        writer.write(received[::-1])
        await writer.drain()

    async with serving(echo_late, contexts[0]) as address:
        heard = await connect(address, contexts[1], Heard)
        heard.write(MUCH)
        heard.write(MUCH)
        was_sending = heard.is_sending
        await heard.until(lambda it: bool(it.ends))

    assert was_sending
    assert heard.data == (MUCH + MUCH)[::-1]
    assert (heard.ends, heard.is_open) == ([None], False)


async def test_both_sides_may_send_much_at_the_same_time(contexts: Contexts) -> None:
    received = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(MUCH)
        received.append(await reader.readexactly(len(MUCH)))
        await writer.drain()

    async with serving(talk, contexts[0]) as address:
        heard = await connect(address, contexts[1], Heard)
        heard.write(MUCH)
        await heard.until(lambda it: bool(it.ends))

    assert heard.data == MUCH
    assert received == [MUCH]


async def test_a_connection_that_is_reset_ends_with_its_error() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await reader.readexactly(1)

    async with serving(reset, None) as address:
        heard = await connect(address, None, Heard)
        heard.write(b"!")
        await heard.until(lambda it: bool(it.ends))

    assert isinstance(heard.ends[0], ConnectionResetError)
    assert not heard.is_open


async def test_it_ends_once_and_at_once_even_with_something_unsent(contexts: Contexts) -> None:
    """A server that stops reading and says goodbye: nobody waits until it takes the rest."""
    over = asyncio.Event()

    async def say_goodbye(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        if contexts[0] is None:
            writer.write_eof()
        else:
            writer.close()
        await over.wait()

    async with serving(say_goodbye, contexts[0]) as address:
        heard = await connect(address, contexts[1], Heard)
        heard.write(MUCH)
        await heard.until(lambda it: bool(it.ends))
        over.set()
        await asyncio.sleep(0.05)

    assert len(heard.ends) == 1
    assert not heard.is_open


async def test_who_aborts_it_is_told_once_and_hears_no_more(contexts: Contexts) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        while await reader.read(1):
            writer.write(b"and so on")
            await writer.drain()

    async with serving(talk, contexts[0]) as address:
        heard = await connect(address, contexts[1], Heard)
        await heard.until(lambda it: it.data == b"here")
        heard.write(b"!")
        heard.abort()
        heard.abort()
        await asyncio.sleep(0.05)

    assert (heard.ends, bytes(heard.data)) == ([None], b"here")


async def test_a_server_that_lost_its_power_is_missed_within_a_minute(contexts: Contexts) -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        await reader.read()

    async with serving(wait, contexts[0]) as address:
        heard = await connect(address, contexts[1], Heard)
        await heard.until(lambda it: it.data == b"here")
        found = heard._transport.get_extra_info("socket")
        is_asked = found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        is_prompt = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        after, every, times = (
            found.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        heard.abort()

    assert is_asked
    assert is_prompt
    assert after + every * times < 60


async def test_a_server_that_nobody_vouches_for_is_not_talked_to(pki: Certificates, tmp_path: Path) -> None:
    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read())

    received: list[bytes] = []
    others = Certificates(tmp_path / "other", addresses=())
    server = await asyncio.start_server(read, "127.0.0.1", 0, ssl=theirs(pki))
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(CannotConnect) as caught:
            await connect(Address("127.0.0.1", port, "127.0.0.1"), ours(others.ca), Heard)
        with pytest.raises(CannotConnect) as misnamed:
            await connect(Address("127.0.0.1", port, "elsewhere"), ours(pki.ca), Heard)

    assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
    assert isinstance(misnamed.value.__cause__, ssl.SSLCertVerificationError)
    assert not any(received)


async def test_a_handshake_that_does_not_come_leaves_nothing_behind(pki: Certificates) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = Address("127.0.0.1", listening.getsockname()[1], "127.0.0.1")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await connect(address, ours(pki.ca), Heard)
        await asyncio.sleep(0.01)
        accepted, _ = listening.accept()
        with accepted:
            accepted.settimeout(10)
            while accepted.recv(65536):
                pass  # Its first words; then it hangs up.


async def test_a_server_that_hangs_up_in_the_handshake_cannot_be_connected_to(pki: Certificates) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)

    async with serving(hang_up, None) as address:
        with pytest.raises(CannotConnect) as caught:
            await connect(address, ours(pki.ca), Heard)

    assert isinstance(caught.value.__cause__, OSError)


class Renegotiating(Thread):
    """Reads some of a request, wants a new handshake in the middle of it, and reads the rest."""

    def __init__(self, listening: socket.socket, pki: Certificates) -> None:
        super().__init__(daemon=True)
        self.received = bytearray()
        self.renegotiations = 0
        self._listening = listening
        self._context = SSL.Context(SSL.TLS_METHOD)
        self._context.set_max_proto_version(SSL.TLS1_2_VERSION)
        self._context.use_certificate_chain_file(str(pki.api_server.certificate))
        self._context.use_privatekey_file(str(pki.api_server.key))

    def run(self) -> None:
        accepted, _ = self._listening.accept()
        accepted.settimeout(None)
        secure = SSL.Connection(self._context, accepted)
        secure.set_accept_state()
        secure.do_handshake()
        self.received += secure.recv(65536)
        secure.renegotiate()
        secure.do_handshake()  # Says hello; the answer comes between bytes of the request.
        while len(self.received) < len(MUCH):
            self.received += secure.recv(65536)
        self.renegotiations = secure.total_renegotiations()
        secure.sendall(b"thanks")
        with suppress(SSL.Error):
            secure.recv(1)
        secure.close()


async def test_tls_may_want_to_read_while_we_write(pki: Certificates) -> None:
    """What is left of a request waits for the server's part of a new handshake, and is not lost by it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Renegotiating(listening, pki)
        server.start()
        heard = await connect(
            Address("127.0.0.1", listening.getsockname()[1], "127.0.0.1"), ours(pki.ca), Heard
        )
        heard.write(MUCH)
        await heard.until(lambda it: it.data == b"thanks" or bool(it.ends))
        heard.abort()
        await asyncio.to_thread(server.join, 30)

    assert server.received == MUCH
    assert server.renegotiations == 1
    assert heard.data == b"thanks"


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
