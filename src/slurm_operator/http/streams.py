"""An answer that goes on for minutes: a watch, or a log that somebody follows."""

import asyncio
from collections.abc import AsyncIterator

from slurm_operator.http.connection import Connection
from slurm_operator.http.messages import Head, NotHttp, Reading, TooLarge

# Of what has come and was not taken. An event of a watch is an object, of which etcd takes a hundredth.
MAX_WAITING_BYTES = 1 << 28

# What follows so soon upon the last is one of many. These are read by the clock, many at once: to be woken
# for each costs more than to read it. The first ones are never waited for.
GATHERED_SECONDS = 0.025
_SOON_SECONDS = 2 * GATHERED_SECONDS

# So much of a large answer may wait while the piece before it is read.
_MOST_AHEAD_BYTES = 1 << 19


class Stream(Connection):
    """One request on a connection of its own. Whoever makes one aborts it."""

    def __init__(self, max_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._answer = Reading(max_waiting_bytes)
        self._failure: Exception | None = None
        self._news: asyncio.Future[None] | None = None
        self._heard_at = float("-inf")
        self._resting: asyncio.TimerHandle | None = None

    async def begin(self, message: bytes, idle_seconds: float | None) -> Head:
        """Sends the request. Raises TimeoutError, and what `pieces` raises."""
        self.write(message)
        while self._answer.head is None:
            await self._more(idle_seconds)
        return self._answer.head

    async def pieces(self, idle_seconds: float | None) -> AsyncIterator[bytes]:
        """The body as it comes. TimeoutError when nothing does for so long; OSError, EOFError, NotHttp and
        TooLarge when it stops in the middle.
        """
        while True:
            if piece := self._answer.taken():
                self._took()
                yield piece
            elif self._answer.is_whole:
                return
            else:
                await self._more(idle_seconds)

    async def whole(self, idle_seconds: float | None, max_bytes: int) -> bytes:
        """All of a body that is expected to be short. Raises what `pieces` raises."""
        body = b""
        async for piece in self.pieces(idle_seconds):
            body += piece
            if len(body) > max_bytes:
                raise TooLarge(f"more than {max_bytes} bytes")
        return body

    async def _more(self, seconds: float | None) -> None:
        """Until something has come, or nothing will."""
        if self._failure is not None:
            raise self._failure
        self._news = self._loop.create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._news
        finally:
            self._news = None

    def data_received(self, data: bytes) -> None:
        try:
            self._answer.feed(data)
        except (NotHttp, TooLarge) as error:
            self.abort(error)
        else:
            self._gather()
        self._wake()

    def _gather(self) -> None:
        now = self._loop.time()
        if now - self._heard_at < _SOON_SECONDS and self._resting is None:
            self._transport.pause_reading()
            self._resting = self._loop.call_later(GATHERED_SECONDS, self._listen)
        self._heard_at = now

    def _listen(self) -> None:
        self._resting = None
        self._transport.resume_reading()

    def _took(self) -> None:
        """Somebody has taken what was waiting."""

    def ended(self, why: Exception | None) -> None:
        """For some answers that is how they end."""
        if self._resting is not None:
            self._resting.cancel()
        try:
            self._answer.end()
        except EOFError as error:
            self._failure = why or error
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class Download(Stream):
    """One large answer. It arrives no faster than it is taken, so little of it is ever waiting."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self._is_paused = False

    def _gather(self) -> None:
        if self._answer.waiting_bytes > _MOST_AHEAD_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _took(self) -> None:
        if self._is_paused and self.is_open:
            self._is_paused = False
            self._transport.resume_reading()
