"""One connection to the API server: bytes out, and bytes in as they come, with TLS on the socket itself.

asyncio's own TLS takes every byte through two more buffers and wakes up its reader for each record. To read
until nothing is left costs half of that for a small call, and a third for a watch.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Self, TypeAlias
from urllib.parse import urlsplit

import aiohappyeyeballs

# How long an address of the server may be silent before the next one is tried beside it.
_NEXT_ADDRESS_SECONDS = 0.25

# A server whose machine lost its power says nothing, and so does one whose watch has nothing to tell. After
# so much silence the kernel asks it, so often and so many times, before it calls the connection broken.
_ASKED = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}

# A record of TLS is no larger. So many of them in one turn, then others have theirs.
_READ_BYTES = 16 * 1024
_READS_IN_A_TURN = 64

# What the socket says when nothing more is there, or nothing more goes. Of TLS either may wait for the other.
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

_Watch: TypeAlias = Callable[[int, Callable[[], None]], None]
_Unwatch: TypeAlias = Callable[[int], bool]


class CannotConnect(Exception):  # noqa: N818 - it says what is the case
    """Nobody took the call, nothing was sent. The cause says why."""


class Address(NamedTuple):
    """Where a server is, and the name on its certificate."""

    host: str
    port: int
    server_name: str

    @classmethod
    def of(cls, server: str, server_name: str) -> Self:
        """`server_name` may be empty: then it is the one in the address."""
        parts = urlsplit(server)
        host = parts.hostname or ""
        return cls(host, parts.port or (443 if parts.scheme == "https" else 80), server_name or host)


async def connected(address: Address, tls: ssl.SSLContext | None) -> socket.socket:
    """A socket that does not block, with the handshake done. Raises CannotConnect."""
    try:
        plain = await aiohappyeyeballs.start_connection(
            await _resolved(address), happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS
        )
        _set_up(plain)
        return plain if tls is None else await _secured(plain, tls, address.server_name)
    except (OSError, UnicodeError) as error:
        raise CannotConnect from error


def _set_up(plain: socket.socket) -> None:
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ASKED.items():
        if hasattr(socket, name):  # Not everywhere: the command for people also runs on other systems.
            plain.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _resolved(address: Address) -> Sequence[aiohappyeyeballs.AddrInfoType]:
    with suppress(socket.gaierror):  # A number needs no asking, and so no thread.
        return socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    return await asyncio.get_running_loop().getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)


async def _secured(plain: socket.socket, tls: ssl.SSLContext, server_name: str) -> ssl.SSLSocket:
    loop = asyncio.get_running_loop()
    with plain:  # Wrapping takes the socket out of it.
        secure = tls.wrap_socket(plain, server_hostname=server_name, do_handshake_on_connect=False)
    try:
        while True:
            try:
                secure.do_handshake()
            except ssl.SSLWantReadError:
                await _ready(secure.fileno(), loop.add_reader, loop.remove_reader)
            except ssl.SSLWantWriteError:
                await _ready(secure.fileno(), loop.add_writer, loop.remove_writer)
            else:
                return secure
    except BaseException:
        secure.close()
        raise


async def _ready(descriptor: int, watch: _Watch, unwatch: _Unwatch) -> None:
    ready = asyncio.get_running_loop().create_future()
    watch(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        unwatch(descriptor)


class Link:
    """`hear` gets what comes. `end` is told once when nothing more will: why, or None if the other side
    just stopped. Who aborts it is told nothing.
    """

    def __init__(
        self,
        connection: socket.socket,
        hear: Callable[[bytes], None],
        end: Callable[[Exception | None], None],
    ) -> None:
        self.is_open = True
        self._socket, self._descriptor = connection, connection.fileno()
        self._hear, self._end = hear, end
        self._loop = asyncio.get_running_loop()
        self._unsent = b""
        self._resting: asyncio.TimerHandle | None = None
        self._listen()

    @property
    def is_sending(self) -> bool:
        """Something that was written has not left yet."""
        return bool(self._unsent)

    def write(self, data: bytes) -> None:
        """What the other side does not take at once follows when it does."""
        is_first = not self._unsent
        self._unsent += data
        if is_first:
            self._send()

    def rest(self, seconds: float) -> None:
        """Leave what comes alone for so long: then there is more of it at once."""
        self._loop.remove_reader(self._descriptor)
        self._resting = self._loop.call_later(seconds, self._listen)

    def abort(self) -> None:
        """No goodbye: the other side may be gone, and has nothing to add."""
        if not self.is_open:
            return
        self.is_open = False
        if self._resting is not None:
            self._resting.cancel()
        self._loop.remove_reader(self._descriptor)
        self._loop.remove_writer(self._descriptor)
        self._socket.close()

    def _listen(self) -> None:
        self._resting = None
        self._loop.add_reader(self._descriptor, self._receive)

    def _receive(self) -> None:
        pieces, is_over, why = self._all_there_is()
        if self._unsent and not is_over:
            self._send()  # TLS may have waited for something to read.
        if pieces:
            self._hear(b"".join(pieces))
        if is_over:
            self._over(why)

    def _all_there_is(self) -> tuple[list[bytes], bool, OSError | None]:
        """What has arrived; whether that was all, and why."""
        pieces: list[bytes] = []
        try:
            for _ in range(_READS_IN_A_TURN):
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    return pieces, True, None
                pieces.append(data)
        except ssl.SSLWantWriteError:
            self._loop.add_writer(self._descriptor, self._writable)
        except _NOT_NOW:
            pass
        except OSError as error:
            return pieces, True, error
        return pieces, False, None

    def _send(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except ssl.SSLWantReadError:
            pass  # Whatever comes next has it sent.
        except _NOT_NOW:
            self._loop.add_writer(self._descriptor, self._writable)
        except OSError as error:
            self._over(error)

    def _writable(self) -> None:
        self._loop.remove_writer(self._descriptor)
        self._send()
        if self.is_open and self._resting is None:
            self._receive()  # TLS may have waited for something to send.

    def _over(self, why: Exception | None) -> None:
        if self.is_open:
            self.abort()
            self._end(why)
