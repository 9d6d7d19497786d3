"""One connection to a server: how it is made, and what everybody who uses one needs."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Self, TypeVar, cast
from urllib.parse import urlsplit

import aiohappyeyeballs

# How long an address of the server may be silent before the next one is tried beside it.
_NEXT_ADDRESS_SECONDS = 0.25

# A server whose machine lost its power says nothing, and so does one whose watch has nothing to tell. After
# so much silence the kernel asks it, so often and so many times, before it calls the connection broken.
_ASKED = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}


class CannotConnect(Exception):  # noqa: N818 - it says what is the case
    """Nobody took the call, nothing was sent. The cause says why."""


class Address(NamedTuple):
    """Where a server is, and the name on its certificate."""

    host: str
    port: int
    server_name: str

    @classmethod
    def of(cls, server: str, server_name: str = "") -> Self:
        """`server_name` may be empty: then it is the one in the address. Raises ValueError."""
        parts = urlsplit(server)
        host = parts.hostname or ""
        return cls(host, parts.port or (443 if parts.scheme == "https" else 80), server_name or host)


class Connection(asyncio.Protocol):
    """Bytes out, and bytes in as they come: `data_received`. `ended` is called once when nothing more will
    come, with the error, or None if one of the sides just stopped.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._transport: asyncio.Transport

    @property
    def is_sending(self) -> bool:
        """Much of what was written has not left yet."""
        return self._transport.get_write_buffer_size() > 0

    def write(self, data: bytes) -> None:
        """What the other side does not take at once follows when it does."""
        self._transport.write(data)

    def abort(self, why: Exception | None = None) -> None:
        """No goodbye: the other side may be gone, and has nothing to add."""
        if self.is_open:
            self.is_open = False
            self._transport.abort()
            self.ended(why)

    def ended(self, why: Exception | None) -> None:
        """Nothing more will come: whoever waits for something says so here."""

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def eof_received(self) -> None:
        """At once, not when the rest of a request has left, for which nobody may wait any more."""
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.abort(error)


C = TypeVar("C", bound=Connection)


async def connect(address: Address, tls: ssl.SSLContext | None, make: Callable[[], C]) -> C:
    """An open connection, with the handshake done. Raises CannotConnect."""
    loop = asyncio.get_running_loop()
    name = address.server_name if tls is not None else None
    try:
        plain = await aiohappyeyeballs.start_connection(
            await _resolved(address), happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS
        )
        _set_up(plain)
        _, made = await loop.create_connection(make, sock=plain, ssl=tls, server_hostname=name)
    except (OSError, UnicodeError) as error:
        raise CannotConnect from error
    return made


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
