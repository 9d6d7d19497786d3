"""Waiting for something to become true, in imagined time."""

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], bool], step_seconds: float = 1.0) -> None:
    """Comes back when it holds. The deadline is the test's own."""
    while True:
        if condition():
            return
        await asyncio.sleep(step_seconds)
