"""Connections to the API server for calls: kept open for the next one, one call at a time on each."""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial

from slurm_operator.http.calls import CallConnection, DeadlinePassed
from slurm_operator.http.connection import Address, connect
from slurm_operator.http.messages import Answer

# Methods that may be repeated on another connection: they change nothing.
READS = frozenset({"GET", "HEAD"})

_IDLE_SECONDS = 60.0


class Connections:
    """As many as there are calls at once."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[CallConnection] = []
        self._in_use: set[CallConnection] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    async def exchange(
        self,
        method: str,
        message: bytes,
        tls: ssl.SSLContext | None,
        before_sending: Callable[[], None],
        ends: float,
    ) -> Answer:
        """The answer to one request. `before_sending` may raise in the moment in which its bytes would leave.

        Raises TimeoutError when it has not come by `ends`, on the clock of the event loop; CannotConnect; and
        when the answer does not come OSError, EOFError, NotHttp and TooLarge.
        """
        kept = self._kept(tls)
        if kept is not None:
            try:
                return await self._on(kept, method, message, before_sending, ends)
            except DeadlinePassed:
                raise
            except (OSError, EOFError):
                if method not in READS or kept.has_answered:
                    raise  # Else the server closed it while the request was on its way to it.
        async with asyncio.timeout_at(ends):
            fresh = await connect(self._address, tls, partial(CallConnection, tls))
        return await self._on(fresh, method, message, before_sending, ends)

    def drop_idle_since(self, since: float) -> None:
        """A call that began then had no answer in time: the server may be gone, and nothing told us.

        Whatever has been idle since before may lead to it, and would cost another call its time.
        """
        silent = [connection for connection in self._idle if connection.idle_since < since]
        self._idle = [connection for connection in self._idle if connection.idle_since >= since]
        for connection in silent:
            connection.abort()

    def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in (*self._idle, *self._in_use):
            connection.abort()
        self._idle.clear()

    async def _on(
        self,
        connection: CallConnection,
        method: str,
        message: bytes,
        before_sending: Callable[[], None],
        ends: float,
    ) -> Answer:
        self._in_use.add(connection)
        try:
            before_sending()
            answer = await connection.exchange(method, message, ends)
        except BaseException:
            connection.abort()  # Whatever comes back on it belongs to this call, which is over.
            raise
        finally:
            self._in_use.discard(connection)
        if answer.is_last or connection.is_sending:
            connection.abort()
        else:
            self._keep(connection)
        return answer

    def _kept(self, tls: ssl.SSLContext | None) -> CallConnection | None:
        """The one used last; others may grow old. One made with another certificate is of no use."""
        while self._idle:
            connection = self._idle.pop()
            if connection.tls is tls and connection.is_open:
                return connection
            connection.abort()
        return None

    def _keep(self, connection: CallConnection) -> None:
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweeping is None:
            self._sweeping = loop.call_later(_IDLE_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """The ones used longest ago are first."""
        loop = asyncio.get_running_loop()
        while self._idle and loop.time() - self._idle[0].idle_since >= _IDLE_SECONDS:
            self._idle.pop(0).abort()
        oldest = self._idle[0].idle_since if self._idle else None
        self._sweeping = None if oldest is None else loop.call_at(oldest + _IDLE_SECONDS, self._sweep)
