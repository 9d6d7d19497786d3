"""The event loop of programs that run for long: uvloop on Linux, Python's own elsewhere.

The same connections run on both; the command for people, which ends after seconds, uses Python's own.
"""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any


def new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform != "linux":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


def run(work: Coroutine[Any, Any, int]) -> int:
    """`asyncio.run` on such a loop."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)
