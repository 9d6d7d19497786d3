"""An answer that goes on for minutes: a watch, or a log that somebody follows."""

import asyncio
import socket
from collections.abc import AsyncIterator

from slurm_operator.http.http1 import Following, Head, NotHttp, TooLarge
from slurm_operator.http.links import Link

# Of one chunk: an event of a watch is an object, of which etcd takes a hundredth.
_MAX_CHUNK_BYTES = 1 << 28

# What follows so soon upon the last is one of many. These are read by the clock, many at once: to be woken
# for each costs more than to read it. The first ones are never waited for.
GATHERED_SECONDS = 0.025
_SOON_SECONDS = 2 * GATHERED_SECONDS


class Stream:
    """One request on a connection of its own. Whoever makes one aborts it."""

    def __init__(self, connection: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._answer = Following(_MAX_CHUNK_BYTES)
        self._pieces: list[bytes] = []
        self._ended: Exception | None = None
        self._news: asyncio.Future[None] | None = None
        self._heard_at = float("-inf")
        self._link = Link(connection, self._hear, self._end)

    async def begin(self, message: bytes, idle_seconds: float) -> Head:
        """Sends the request. Raises TimeoutError, and what `pieces` raises."""
        self._link.write(message)
        while self._answer.head is None:
            await self._more(idle_seconds)
        return self._answer.head

    async def pieces(self, idle_seconds: float) -> AsyncIterator[bytes]:
        """The body as it comes. TimeoutError when nothing does for so long; OSError, EOFError, NotHttp and
        TooLarge when it stops in the middle.
        """
        while self._pieces or not self._answer.is_whole:
            if not self._pieces:
                await self._more(idle_seconds)
            if self._pieces:
                pieces, self._pieces = self._pieces, []
                yield b"".join(pieces)

    async def whole(self, idle_seconds: float) -> bytes:
        return b"".join([piece async for piece in self.pieces(idle_seconds)])

    def abort(self) -> None:
        self._link.abort()
        self._end(None)

    async def _more(self, seconds: float) -> None:
        """Until something has come, or nothing will."""
        if self._ended is not None:
            raise self._ended
        self._news = self._loop.create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._news
        finally:
            self._news = None

    def _hear(self, data: bytes) -> None:
        try:
            self._pieces += self._answer.feed(data)
        except (NotHttp, TooLarge) as error:
            self._link.abort()
            self._ended = error
        else:
            self._gather()
        self._wake()

    def _gather(self) -> None:
        now = self._loop.time()
        if now - self._heard_at < _SOON_SECONDS:
            self._link.rest(GATHERED_SECONDS)
        self._heard_at = now

    def _end(self, why: Exception | None) -> None:
        """Nothing more comes. For some answers that is how they end."""
        if self._ended is not None or self._answer.is_whole:
            return
        try:
            self._pieces += self._answer.end()
        except EOFError as error:
            self._ended = why or error
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
