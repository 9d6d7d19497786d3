"""Time that a test moves by hand."""

import asyncio
from datetime import UTC, datetime, timedelta

# Who would wait so long waits for news, not for the time.
IDLE_SECONDS = 3600.0


class FakeClock:
    """Waiting takes no time: the clock is simply put forward."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.set_back = 0.0  # By so many seconds: the monotonic clock knows nothing of that.
        self.waits: list[float] = []

    def now(self) -> datetime:
        return self.steady() - timedelta(seconds=self.set_back)

    def steady(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed

    def advance(self, seconds: float) -> None:
        self.passed += seconds

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        await asyncio.sleep(0)
        if seconds >= IDLE_SECONDS:
            await event.wait()
        if not event.is_set():
            self.waits.append(seconds)
            self.advance(seconds)
