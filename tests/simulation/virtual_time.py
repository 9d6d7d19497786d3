"""An event loop without a real clock: when nothing is left to do, it is already later."""

import asyncio
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, 12, tzinfo=UTC)


class VirtualLoop(asyncio.BaseEventLoop):
    """No sockets, no threads, no waiting; so the order of everything follows from what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0
        self._selector = self

    def time(self) -> float:
        return self.passed

    def select(self, timeout: float | None) -> list:
        if timeout is None:
            raise RuntimeError("everybody waits, and nobody will ever wake them")
        self.passed += max(timeout, 0.0)
        return []

    def _process_events(self, events: list) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


class VirtualClock:
    """The clock of whoever lives in that loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return self.steady()

    def steady(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.passed)

    def monotonic(self) -> float:
        return self._loop.passed

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass


class SteppedClock(VirtualClock):
    """The clock of a machine that somebody sets: fast by so many seconds, or slow. Time passes all the same."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(loop)
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return self.steady() + self.ahead
