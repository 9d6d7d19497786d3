"""Time, as an argument: what waits or measures gets a clock, so that tests need not sleep."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """What people call the time."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, whatever is done to the machine's clock."""
        ...

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Until `event` is set, or for so long."""
        ...


class SystemClock:
    """The real one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass
