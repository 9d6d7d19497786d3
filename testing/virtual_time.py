"""Event loops in which waiting costs nothing: hours pass when there is nothing else to do. And clocks for them."""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple

Given = TypeVarTuple("Given")
Result = TypeVar("Result")

EPOCH = datetime(2026, 1, 1, 12, tzinfo=UTC)

# Who would wait so long waits for news, not for the time.
IDLE_SECONDS = 3600.0

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


class Process:
    """Whose context has it in `PROCESS` belongs to it, and does nothing while it is frozen. Its timers run out."""

    def __init__(self) -> None:
        self.is_frozen = False
        self._due: list[_Step] = []

    def freeze(self) -> None:
        self.is_frozen = True

    def thaw(self) -> None:
        self.is_frozen = False
        due, self._due = self._due, []
        for step in due:
            step.again()


PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)


class _Step:
    """Something that a process does when its turn comes."""

    handle: asyncio.Handle

    def __init__(self, process: Process, callback: Callable[..., object], context: Context) -> None:
        self._process = process
        self._callback = callback
        self._context = context
        self._args: tuple[object, ...] = ()

    def __call__(self, *args: object) -> None:
        if self._process.is_frozen:
            self._args = args
            self._process._due.append(self)
        else:
            self._callback(*args)

    def again(self) -> None:
        """Unless it was called off meanwhile."""
        if not self.handle.cancelled():
            self.handle = asyncio.get_running_loop().call_soon(
                self._callback, *self._args, context=self._context
            )


class SimulatedLoop(asyncio.BaseEventLoop):
    """No sockets, no threads, no waiting; so the order of everything follows from what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0
        self._selector = self

    def call_soon(
        self, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context  # An empty one counts as false.
        process = context.get(PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        step = _Step(process, callback, context)
        step.handle = super().call_soon(step, *args, context=context)
        return step.handle

    def call_at(
        self, when: float, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context  # An empty one counts as false.
        process = context.get(PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        step = _Step(process, callback, context)
        handle = step.handle = super().call_at(when, step, *args, context=context)
        return handle

    def time(self) -> float:
        return self.passed

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everybody waits, and nobody will ever wake them")
        self.passed += max(timeout, 0.0)
        return []

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


class VirtualClock:
    """What follows from the seconds that have `passed`. Whoever sets the machine's clock changes `ahead`."""

    ahead = timedelta(0)

    @property
    def passed(self) -> float:
        raise NotImplementedError

    def now(self) -> datetime:
        return self.steady() + self.ahead

    def steady(self) -> datetime:
        return EPOCH + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass


class LoopClock(VirtualClock):
    """The clock of whoever lives in a simulated loop."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    @property
    def passed(self) -> float:
        return self._loop.passed


class FakeClock(VirtualClock):
    """A test moves it by hand. Waiting takes no time: the clock is simply put forward."""

    def __init__(self) -> None:
        self._passed = 0.0
        self.waits: list[float] = []

    @property
    def passed(self) -> float:
        return self._passed

    def advance(self, seconds: float) -> None:
        self._passed += seconds

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        await asyncio.sleep(0)
        if seconds >= IDLE_SECONDS:
            await event.wait()
        if not event.is_set():
            self.waits.append(seconds)
            self.advance(seconds)
