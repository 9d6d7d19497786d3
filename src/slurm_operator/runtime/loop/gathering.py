"""An event loop that, when very much is going on, waits a moment so that one waking finds several things.

A thousand pods that come are ten thousand answers and watch events, one after the other. To be woken for each
of them costs more than to read it. While little happens, nothing is ever waited for.
"""

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any

MOMENT_SECONDS = 0.005

# So many wakings a second are no crowd, nor are a few more than that for a short while.
CALM_PER_SECOND = 100
CROWD = 10


class Gathering(selectors.DefaultSelector):
    """No timer is late by it, and what comes is at most a moment late."""

    def __init__(self) -> None:
        super().__init__()
        self._crowd = 0.0  # How many wakings there were beyond the calm ones.
        self._woken_at = time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= MOMENT_SECONDS:
            return super().select(timeout)
        if self._crowd >= CROWD:
            time.sleep(MOMENT_SECONDS)
            timeout = timeout - MOMENT_SECONDS if timeout is not None else None
        found = super().select(timeout)
        woken_at = time.monotonic()
        calm = (woken_at - self._woken_at) * CALM_PER_SECOND
        self._crowd = min(max(self._crowd - calm, 0.0) + 1, 2 * CROWD)
        self._woken_at = woken_at
        return found


def run(work: Coroutine[Any, Any, int]) -> int:
    """`asyncio.run` on such a loop."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(Gathering())) as runner:
        return runner.run(work)
