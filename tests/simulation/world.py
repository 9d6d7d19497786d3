"""The simulated world, put together: time passes, things happen, and every promise is checked."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from simulation.apiserver import OPERATOR, ApiServer, Object
from simulation.client import SimulatedClient
from simulation.machines import Machines, Process
from simulation.operator_process import OperatorProcess
from simulation.refusing import Refusing
from simulation.slurmctld import Slurmctld
from simulation.slurmrest import SimulatedRest
from simulation.weather import Weather
from slurm_operator.runtime.manager import Program
from testing.virtual_time import LoopClock, SimulatedLoop

TOLD = 60  # How many of the last lines a report shows.
LIVELY_SECONDS, QUIET_STEP_SECONDS = 120.0, 10.0


class World:
    """Everything there is. `violation` is the first promise that was broken, or None."""

    def __init__(
        self, loop: SimulatedLoop, seed: int, roughness: float, program: Program, late: float = 0.0
    ) -> None:
        self.loop = loop
        self.clock = LoopClock(loop)
        self.operator_clock = LoopClock(loop)
        self.weather = Weather(seed, roughness, late)
        self.program = program
        self.server = ApiServer(self.clock)
        # Every other cluster has Slurm's own default, with which no node comes back on its own.
        self.ctld = Slurmctld(self.weather, self.clock.now(), self.note, returns_to_service=seed % 2 == 0)
        self.machines = Machines(self.server, self.ctld, self.weather, self._ends, self.note)
        self.client = SimulatedClient(self.server, self.weather, self._written, self._count)
        self.rest = SimulatedRest(self.ctld, self.weather, self._wrote_slurm, self._count)
        self.lines: deque[str] = deque(maxlen=TOLD)
        self.steps = 0
        self.violation: str | None = None
        self.last_write_at = 0.0
        self.writes = 0
        self.on_end: list[Callable[[Process, str], None]] = []
        self.on_slurm_write: list[Callable[[str, tuple[str, ...], float], None]] = []
        self.on_second: list[Callable[[], None]] = []
        self.on_tick: list[Callable[[], None]] = []  # What else goes on in this world.
        self.loses_memory: Callable[[Object], None] = lambda pod: None
        self.operator: OperatorProcess | None = None
        self.client.on_late = self._late
        self._crashes: set[asyncio.Task[None]] = set()
        self.refusing = Refusing(self.server, loop.time, self.broken)
        self.client.refuses = self.refusing.look

    # ---- What is told

    def note(self, line: str) -> None:
        """One step of the story."""
        self.steps += 1
        self.lines.append(f"{self.loop.time():7.2f}  {line}")

    def _count(self) -> None:
        self.steps += 1

    def broken(self, promise: str) -> None:
        if self.violation is None:
            self.note(f"BROKEN: {promise}")
            self.violation = promise

    def _written(self, attempt: str) -> None:
        self._count_write(f"{OPERATOR}: {attempt}")

    def _wrote_slurm(self, attempt: str, nodes, read_at: float) -> None:
        for hear in self.on_slurm_write:
            hear(attempt, tuple(nodes), read_at)
        self._count_write(f"{OPERATOR} asks Slurm: {attempt}")

    def _count_write(self, line: str) -> None:
        self.last_write_at = self.loop.time()
        self.writes += 1
        self.note(line)

    def _late(self, attempt: str, deadline: float) -> None:
        """Now and then the operator does not live to see that a delete got no answer, or what came of it."""
        self.note(f"{OPERATOR}: {attempt} is carried out late")
        if attempt.startswith("delete Pod") and self.weather.share(f"crash after {attempt}") < 0.5:
            after = 2 * deadline * self.weather.share(f"crash how long after {attempt}")
            self.loop.call_later(after, self._crash_now)

    def _crash_now(self) -> None:
        task = self.loop.create_task(self._crash_and_start())
        self._crashes.add(task)
        task.add_done_callback(self._crashes.discard)

    async def _crash_and_start(self) -> None:
        if self.operator is not None and self.violation is None and self.weather.late:
            await self.crash_operator()
            await self.start_operator()

    def _ends(self, process: Process, why: str) -> None:
        for hear in self.on_end:
            hear(process, why)

    def _passed(self, reconciler: str, result: str) -> None:
        self.steps += 1
        if result == "error":
            self.broken(f"a pass of {reconciler} raised")

    # ---- What happens

    async def start_operator(self) -> None:
        if self.operator is not None:
            return  # It crashed after a late write, and was started again meanwhile.
        self.refusing.lives += 1
        self.operator = OperatorProcess(
            self.program, self.client, self.rest, self.operator_clock, self._passed
        )
        self.operator.start(lambda error: self.broken(f"the operator ends: {error!r}"))
        self.note("the operator starts")

    async def crash_operator(self) -> None:
        if self.operator is not None:
            operator, self.operator = self.operator, None
            await operator.crash()
            self.note("the operator crashes")

    async def pass_seconds(self, seconds: float) -> None:
        """The world goes on in steps of a second; in a long pause, when its first minutes are over, in longer ones."""
        began = self.loop.time()
        end = began + seconds
        while (now := self.loop.time()) < end and self.violation is None:
            step = 1.0 if now - began < LIVELY_SECONDS else QUIET_STEP_SECONDS
            await asyncio.sleep(min(step, end - now))
            self.machines.tick()
            for go_on in self.on_tick:
                go_on()
            self.ctld.pass_time(self.clock.now(), self.machines.living())
            self.server.collect()
            for look in self.on_second:
                look()


@contextmanager
def quiet_logs(broken: Callable[[str], None]) -> Iterator[None]:
    """Of all that the operator logs only its own mistakes are heard."""

    def hear(logger, name, event) -> str:
        error = event.get("exc_info")
        if name == "exception" or error:
            broken(f"the operator logged {event.get('event')!r}: {_raised()}")
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[hear], wrapper_class=structlog.make_filtering_bound_logger(40))
    try:
        yield
    finally:
        structlog.configure(**before)


def _raised() -> str:
    import sys
    import traceback

    error = sys.exc_info()[1]
    return "".join(traceback.format_exception(error)[-3:]) if error is not None else "nothing"


def live(
    seed: int, roughness: float, program: Program, story: Callable[[World], object], late: float = 0.0
) -> World:
    """A world, when its story is over."""
    loop = SimulatedLoop()
    world = World(loop, seed, roughness, program, late)
    random.seed(seed)  # Backoffs and jitter of the operator itself.

    async def whole() -> None:
        await story(world)
        await world.crash_operator()

    asyncio.set_event_loop(None)
    with quiet_logs(world.broken):
        try:
            loop.run_until_complete(whole())
        finally:
            _tidy(loop)
    return world


def _tidy(loop: SimulatedLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
