"""The one writer of a Slurm cluster: one write in flight, merged where it can be, never repeated blindly."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slurm_operator import wire
from slurm_operator.clock import Clock
from slurm_operator.slurm import writes
from slurm_operator.slurm.writes import Answer, NodeWrite, SlurmWrite, Verdict, WriteResult, subjects
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmsync.execute import Sending
from slurm_operator.slurmsync.pending_writes import Ledger
from slurm_operator.slurmsync.poller import SlurmPoller
from slurm_operator.slurmsync.remove_nodes import Guard
from slurm_operator.slurmsync.results import for_all

# Reconcilers that decide in the same moment should share one request.
TICK_SECONDS = 0.02

# A reconfigure restarts every slurmd in place, so several changes wait for each other; but not forever.
RECONFIGURE_QUIET_SECONDS = 2.0
RECONFIGURE_LATEST_SECONDS = 10.0

# Before guarded records go, Slurm is read. Afterwards there is a pause of so many times what it took, but not
# longer than that: where workers become ready to go one by one, they gather meanwhile.
GATHER_COST_FACTOR = 4
GATHER_LONGEST_SECONDS = 1.0

_STOPPING = "the operator is stopping"


@dataclass
class Batch:
    """One write on its way, and everybody who asked for a part of it.

    What is guarded goes only as long as its guards have no objection.
    """

    write: SlurmWrite
    first_at: float
    due_at: float
    askers: list[tuple[tuple[str, ...], asyncio.Future[WriteResult]]] = field(default_factory=list)
    guards: dict[str, Guard] = field(default_factory=dict)

    @property
    def is_fence(self) -> bool:
        """Guarded records go by what is read right before, whenever that was last done."""
        return bool(self.guards) and isinstance(self.write, writes.DeleteNodes)

    def settle(self, answers: Mapping[str, Answer]) -> None:
        """Tells those who have an answer for every subject of theirs; the others wait for more."""
        for wanted, future in self.askers:
            if not future.done() and all(subject in answers for subject in wanted):
                future.set_result(WriteResult(answers={subject: answers[subject] for subject in wanted}))


def merged(first: SlurmWrite, second: SlurmWrite) -> SlurmWrite | None:
    """One write that does both; None when they differ in more than the nodes they name."""
    if isinstance(first, writes.Reconfigure) and isinstance(second, writes.Reconfigure):
        return first
    if not isinstance(first, NodeWrite) or not isinstance(second, NodeWrite):
        return None
    if write_without_nodes(first) != write_without_nodes(second):
        return None
    return wire.replace(first, nodes=tuple(dict.fromkeys((*first.nodes, *second.nodes))))


WriteWithoutNodes = tuple[SlurmWrite, bool]


def write_without_nodes(write: SlurmWrite, *, is_guarded: bool = False) -> WriteWithoutNodes:
    """The write without the nodes that it names: two that say the same may go together."""
    return (wire.replace(write, nodes=()) if isinstance(write, NodeWrite) else write), is_guarded


class SlurmWriter:
    """`write` comes back when it is known what became of it. `may_write` is asked before everything sent."""

    def __init__(
        self,
        client: SlurmRest,
        poller: SlurmPoller,
        ledger: Ledger,
        clock: Clock,
        may_write: Callable[[], bool],
    ) -> None:
        self._sending = Sending(client, poller, ledger, clock, may_write)
        self._poller = poller
        self._clock = clock
        self._waiting: deque[Batch] = deque()
        self._joinable: dict[WriteWithoutNodes, Batch] = {}  # By what a write says, whoever it is about.
        self._last_about: dict[str, Batch] = {}
        self._guarded_from = 0.0  # When the next guarded write may begin.
        self._stir = asyncio.Event()
        self._stopped = False

    async def write(self, write: SlurmWrite, guard: Guard | None = None) -> WriteResult:
        """What became of it, for each subject. Guarded can be what removes records, or is about a job."""
        if self._stopped or not subjects(write):
            return WriteResult(answers=for_all(subjects(write), Verdict.NOT_SENT, _STOPPING))
        future: asyncio.Future[WriteResult] = asyncio.get_running_loop().create_future()
        batch = self._join(write, is_guarded=guard is not None)
        batch.askers.append((subjects(write), future))
        if guard is not None:
            batch.guards |= dict.fromkeys(subjects(write), guard)
        self._stir.set()
        return await future

    async def run(self) -> None:
        """Sends until cancelled; then whoever still waits is told so."""
        try:
            while True:
                if (batch := self._next()) is not None:
                    await self._process(batch)
                    # Everybody sees what came of it; not between any two of a thousand writes.
                    if isinstance(batch.write, writes.Reconfigure) or not self._goes_on:
                        self._poller.read_again(head=isinstance(batch.write, writes.Reconfigure))
                else:
                    self._stir.clear()
                    await self._clock.wait(self._stir, self._idle_s())
        finally:
            self.stop()

    async def _process(self, batch: Batch) -> None:
        began = self._clock.monotonic()
        answers = for_all(subjects(batch.write), Verdict.UNSURE, _STOPPING)
        try:
            answers = await self._sending.carry_out(batch.write, batch.settle, batch.guards)
        finally:
            batch.settle(answers)
        if batch.is_fence:
            ended = self._clock.monotonic()
            self._guarded_from = ended + min(GATHER_COST_FACTOR * (ended - began), GATHER_LONGEST_SECONDS)

    def stop(self) -> None:
        """From now on nothing is sent."""
        self._stopped = True
        for batch in self._waiting:
            batch.settle(for_all(subjects(batch.write), Verdict.NOT_SENT, _STOPPING))
        self._waiting.clear()
        self._joinable.clear()
        self._last_about.clear()

    def _join(self, write: SlurmWrite, *, is_guarded: bool) -> Batch:
        """The batch this write goes with. It never overtakes another one about the same subject."""
        now, like = self._clock.monotonic(), write_without_nodes(write, is_guarded=is_guarded)
        batch = self._joinable.get(like)
        together = merged(batch.write, write) if batch is not None else None
        if batch is None or together is None or self._would_overtake(write, batch):
            due_at = now + TICK_SECONDS
            if isinstance(write, writes.Reconfigure):
                due_at = self._reconfigure_due(now, now)
            batch = Batch(write, now, due_at)
            self._waiting.append(batch)
            self._joinable[like] = batch
        else:
            batch.write = together
            if isinstance(write, writes.Reconfigure):
                batch.due_at = self._reconfigure_due(batch.first_at, now)
        self._last_about.update(dict.fromkeys(subjects(write), batch))
        return batch

    def _would_overtake(self, write: SlurmWrite, batch: Batch) -> bool:
        """Whether something about the same subject has come since the batch was begun."""
        others = (self._last_about.get(subject, batch) for subject in subjects(write))
        return any(other is not batch and other.first_at >= batch.first_at for other in others)

    @staticmethod
    def _reconfigure_due(first_at: float, now: float) -> float:
        return min(now + RECONFIGURE_QUIET_SECONDS, first_at + RECONFIGURE_LATEST_SECONDS)

    def _idle_s(self) -> float:
        """Until the first batch is due."""
        if not self._waiting:
            return 3600.0
        return max(0.0, min(map(self._due_at, self._waiting)) - self._clock.monotonic())

    def _due_at(self, batch: Batch) -> float:
        return max(batch.due_at, self._guarded_from) if batch.is_fence else batch.due_at

    @property
    def _goes_on(self) -> bool:
        """Whether the next write is due, or has to read Slurm anyway before it is sent."""
        now = self._clock.monotonic()
        return any(batch.is_fence or batch.due_at <= now for batch in self._waiting)

    def _next(self) -> Batch | None:
        now = self._clock.monotonic()
        batch = next((batch for batch in self._waiting if self._due_at(batch) <= now), None)
        if batch is not None:
            self._take(batch)
        return batch

    def _take(self, batch: Batch) -> None:
        self._waiting.remove(batch)
        like = write_without_nodes(batch.write, is_guarded=bool(batch.guards))
        if self._joinable.get(like) is batch:
            del self._joinable[like]
        for subject in subjects(batch.write):
            if self._last_about.get(subject) is batch:
                del self._last_about[subject]
