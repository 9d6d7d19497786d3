"""How long something kept the event loop from doing anything else."""

import asyncio
from collections import deque

STEP_SECONDS = 0.25
WINDOW_SECONDS = 60.0


class LagMeter:
    """The longest stall of the last minute. Long ones mean late leases and failed probes."""

    def __init__(self) -> None:
        self._stalls: deque[tuple[float, float]] = deque()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(STEP_SECONDS)
            self.note(loop.time(), max(0.0, loop.time() - before - STEP_SECONDS))

    def note(self, now: float, stall: float) -> None:
        """Keep a stall until it is a minute old, or until a longer one makes it uninteresting."""
        while self._stalls and self._stalls[-1][1] <= stall:
            self._stalls.pop()
        self._stalls.append((now, stall))
        while self._stalls[0][0] < now - WINDOW_SECONDS:
            self._stalls.popleft()

    @property
    def longest_seconds(self) -> float:
        return self._stalls[0][1] if self._stalls else 0.0
