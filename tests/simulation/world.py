"""The simulated world, put together: time passes, things happen, and every promise is checked."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import structlog

from simulation.apiserver import OPERATOR, ApiServer, Object
from simulation.client import SimulatedClient
from simulation.machines import Machines, Process
from simulation.operator_process import LEASE, OperatorProcess
from simulation.refusing import Refusing
from simulation.slurmctld import Slurmctld
from simulation.slurmrest import SimulatedRest
from simulation.weather import Weather
from slurm_operator.manifests import kinds
from slurm_operator.runtime.manager import Program
from testing.virtual_time import LoopClock, SimulatedLoop
from testing.virtual_time import Process as Frozen

TOLD = 60  # How many of the last lines a report shows.
LIVELY_SECONDS, QUIET_STEP_SECONDS = 120.0, 10.0
RESTARTS_AFTER_SECONDS = 2.0


class World:
    """Everything there is. `violation` is the first promise that was broken, or None."""

    def __init__(
        self,
        loop: SimulatedLoop,
        seed: int,
        roughness: float,
        program: Program,
        late: float = 0.0,
        replicas: int = 1,
    ) -> None:
        self.replicas = replicas
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
        self.operators: list[OperatorProcess] = []
        self._lives: dict[Frozen, OperatorProcess] = {}
        self.client.may_write = lambda process: (found := self._whose(process)) is None or found.is_leader
        self.client.is_cut_off = lambda process: (
            (found := self._whose(process)) is not None and found.is_cut_off
        )
        self.client.arrived = self.rest.arrived = self._arrived
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

    def _whose(self, process: Frozen | None) -> OperatorProcess | None:
        """Also of one that has crashed since."""
        return self._lives.get(process) if process is not None else None

    def _arrived(self, process: Frozen | None, attempt: str) -> None:
        """Only whoever holds the Lease writes, and whatever left in time arrives before another one has it."""
        sender = self._whose(process)
        lease = self.server.objects[kinds.LEASE].get(LEASE)
        holder = lease["spec"].get("holderIdentity") if lease is not None else ""
        if sender is not None and sender.identity and holder not in ("", sender.identity):
            self.broken(f"{sender.identity} does {attempt!r}, and {holder} holds the Lease")

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

    @property
    def operator(self) -> OperatorProcess | None:
        """The one that acts, or one that would."""
        return next((one for one in self.operators if one.is_leader), next(iter(self.operators), None))

    async def start_operator(self) -> None:
        while len(self.operators) < self.replicas:  # One that crashed after a late write may be back by now.
            self.refusing.lives += 1
            identity = f"operator-{self.refusing.lives}" if self.replicas > 1 else ""
            operator = OperatorProcess(
                self.program, self.client, self.rest, self.operator_clock, self._passed, identity
            )
            self.operators.append(operator)
            self._lives[operator.process] = operator
            operator.start(partial(self._operator_ended, operator))
            self.note(f"the operator starts {identity}".rstrip())

    def _operator_ended(self, operator: OperatorProcess, error: BaseException | None) -> None:
        if error is not None:
            self.broken(f"the operator ends: {error!r}")
            return
        self.note(f"{operator.identity} has lost the Lease, and starts again")
        self.operators.remove(operator)
        self.loop.call_later(RESTARTS_AFTER_SECONDS, self._start_again)

    def _start_again(self) -> None:
        if self.violation is None and self.operators:
            task = self.loop.create_task(self.start_operator())
            self._crashes.add(task)
            task.add_done_callback(self._crashes.discard)

    async def crash_operator(self, *which: OperatorProcess) -> None:
        """Those, or all of them."""
        for operator in which or tuple(self.operators):
            self.operators.remove(operator)
            await operator.crash()
            self.note(f"the operator crashes {operator.identity}".rstrip())

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
    seed: int,
    roughness: float,
    program: Program,
    story: Callable[[World], object],
    late: float = 0.0,
    replicas: int = 1,
) -> World:
    """A world, when its story is over."""
    loop = SimulatedLoop()
    world = World(loop, seed, roughness, program, late, replicas)
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
