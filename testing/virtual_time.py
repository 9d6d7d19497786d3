"""An event loop in which waiting costs nothing: hours pass when there is nothing else to do."""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

Given = TypeVarTuple("Given")
Result = TypeVar("Result")

# Bytes on loopback need a moment; only when none came in this time does the clock move.
_REAL_PATIENCE_SECONDS = 0.004


class _Selector(selectors.DefaultSelector):
    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(_REAL_PATIENCE_SECONDS)
        if not ready and not self.loop.threads_at_work:
            self.loop.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Real sockets and threads, imagined time, which stands still while a thread works."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.threads_at_work = 0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Given], Result], *args: *Given
    ) -> asyncio.Future[Result]:
        self.threads_at_work += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_is_done)
        return future

    def _thread_is_done(self, _: object) -> None:
        self.threads_at_work -= 1
