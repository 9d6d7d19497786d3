"""Keys that somebody presses while a screen is drawn again and again."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

try:
    import termios
    import tty
except ImportError:  # Not on Windows: there Ctrl-C ends the screen.
    _HAS_KEYS = False
else:
    _HAS_KEYS = True

QUIT = "qQ"


async def until_key(keys: str, work: Coroutine[Any, Any, None]) -> None:
    """Does the work until it is done, or until one of the keys is pressed at the terminal."""
    task = asyncio.ensure_future(work)
    with _each_key() as descriptor:
        if descriptor is None:
            await task
            return
        loop, pressed = asyncio.get_running_loop(), asyncio.Event()

        def read() -> None:
            # A terminal that is gone is always readable, and says nothing.
            typed = _typed(descriptor)
            if not typed or any(key in typed for key in keys):
                pressed.set()

        loop.add_reader(descriptor, read)
        try:
            await _first(task, pressed)
        finally:
            loop.remove_reader(descriptor)


async def _first(task: "asyncio.Future[None]", pressed: asyncio.Event) -> None:
    waiting = asyncio.ensure_future(pressed.wait())
    both: set[asyncio.Future[Any]] = {task, waiting}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        if not task.done():
            task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _typed(descriptor: int) -> str:
    try:
        return os.read(descriptor, 64).decode(errors="replace")
    except OSError:
        return ""


@contextlib.contextmanager
def _each_key() -> Iterator[int | None]:
    """The terminal, with each key at once and unseen; None where nobody types."""
    if not _HAS_KEYS or not sys.stdin.isatty():
        yield None
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
