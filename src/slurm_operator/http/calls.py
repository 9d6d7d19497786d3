"""One request and its answer on a connection, then the next one."""

import asyncio
import ssl

from slurm_operator.http.connection import Connection
from slurm_operator.http.messages import Answer, NotHttp, Reading, TooLarge

# A list of ten thousand large pods is a tenth of it.
MAX_ANSWER_BYTES = 1 << 30


class DeadlinePassed(TimeoutError):  # noqa: N818 - it says what is the case
    """Ours, not one of the kernel, which also calls a connection timed out."""


class CallConnection(Connection):
    """Sends a request and waits for its answer, one at a time."""

    def __init__(self, tls: ssl.SSLContext | None = None, max_bytes: int = MAX_ANSWER_BYTES) -> None:
        super().__init__()
        self.tls = tls
        self.idle_since = 0.0
        self._reading = Reading(max_bytes)
        self._answer: asyncio.Future[Answer] | None = None

    @property
    def has_answered(self) -> bool:
        """Some of the answer to the last request has come."""
        return self._reading.has_begun

    async def exchange(self, method: str, message: bytes, ends: float | None = None) -> Answer:
        """Raises OSError, EOFError, NotHttp and TooLarge when the answer does not come, and DeadlinePassed
        when it has not come by then, by the clock of the event loop.
        """
        loop = asyncio.get_running_loop()
        self._reading.begin(method)
        answer: asyncio.Future[Answer] = loop.create_future()
        self._answer = answer
        self.write(message)
        # Half as expensive as `asyncio.timeout`, which has to be able to stop whatever is inside.
        deadline = None if ends is None else loop.call_at(ends, _give_up, answer)
        try:
            return await answer
        finally:
            self._answer = None
            if deadline is not None:
                deadline.cancel()

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.abort()  # Nobody asked for more.
            return
        try:
            is_whole = self._reading.feed(data)
        except (NotHttp, TooLarge) as error:
            self._answer.set_exception(error)
            return
        if is_whole:
            self._answer.set_result(self._reading.answer())

    def ended(self, why: Exception | None) -> None:
        """For some answers that is how they end."""
        if self._answer is None or self._answer.done():
            return
        try:
            if why is not None:
                raise why
            self._reading.end()
        except Exception as error:
            self._answer.set_exception(error)
        else:
            self._answer.set_result(self._reading.answer())


def _give_up(answer: asyncio.Future[Answer]) -> None:
    if not answer.done():
        answer.set_exception(DeadlinePassed())
