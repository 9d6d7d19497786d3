"""The lists that make up a Snapshot, each read again only when slurmctld says that it has changed.

A list is marked with the time of slurmctld's own clock, and "unchanged since" compares with that. Its clock
may be set back, or a backup take over whose clock is behind: then changes are hidden until it has caught up.
So it is looked at every time. The reservations tell it: they are few, and read whole.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import structlog

from slurm_operator.clock import Clock
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurmrest.errors import SlurmAnswerUnreadable
from slurm_operator.slurmrest.reader import JobListing, Listing, Reader

# "Nothing has changed since" was never wrong when tested under load; this bounds the cost if it ever is.
WHOLE_EVERY_SECONDS = 300.0

# Marks are whole seconds, and clocks run at slightly different speeds: only more than this was set back.
CLOCK_SLACK_SECONDS = 2.0
# What is less is made up for by asking for the changes since so much earlier, answers on their way included.
ASKED_EARLIER_SECONDS = 5

log = structlog.get_logger(__name__)

L = TypeVar("L", bound=Listing[Any, Any] | JobListing)


class _Mark(NamedTuple):
    """The time of slurmctld's clock when it made a list, and of ours when that was here."""

    at: int
    answered_at: float

    @property
    def since(self) -> int:
        return max(0, self.at - ASKED_EARLIER_SECONDS)

    def is_ahead(self, clock: int, asked_at: float) -> bool:
        """Whether it is later than it can be, given what slurmctld's clock said to a question after it."""
        return clock + CLOCK_SLACK_SECONDS < self.at + asked_at - self.answered_at


class Lists:
    """Remembers each list with its mark. After `forget` the next ones are read whole."""

    def __init__(self, read: Reader, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._nodes: Listing[str, SlurmNode] = Listing({}, 0)
        self._jobs = JobListing({}, {}, 0)
        self._reservations: Mapping[str, Reservation] = {}
        self._partitions: Listing[str, Partition] = Listing({}, 0)
        self._marks: dict[str, _Mark] = {}
        self._clock_behind = timedelta(0)
        self._unstarted_since: dict[str, datetime] = {}
        self._whole_at = clock.monotonic()

    def forget(self) -> None:
        """Never again ask what changed since; what was read stays until it is replaced."""
        self._marks.clear()
        self._whole_at = self._clock.monotonic()

    def ended(self, job_id: int) -> tuple[EndedJob, ...]:
        """How this job ended, or the tasks of this array; nothing where slurmctld does not know it."""
        return self._jobs.ended.get(job_id, ())

    def is_open(self, job_id: int) -> bool:
        """Whether something of this job, or of this array, is not finished."""
        return job_id in self._jobs.open_ids

    async def nodes(self) -> Mapping[str, SlurmNode]:
        before, asked_at = self._nodes, self._clock.steady()
        self._nodes = await self._changed("nodes", self._read.nodes, before)
        if self._nodes is not before:
            self._unstarted_since = {
                name: self._unstarted_since.get(name, asked_at)
                for name, node in self._nodes.records.items()
                if node.slurmd_start_time is None
            }
        return self._nodes.records

    async def snapshot(self) -> Snapshot:
        """Nodes first, then jobs: a job that starts in between shows in the second list."""
        if self._clock.monotonic() - self._whole_at >= WHOLE_EVERY_SECONDS:
            self.forget()
        snapshot = await self._snapshot()
        if snapshot is None:
            log.warning("slurmctld's clock was set back, so everything is read again")
            self.forget()
            snapshot = await self._snapshot()
        if snapshot is None:
            raise SlurmAnswerUnreadable("read the cluster", "slurmctld's clock is set back while we look")
        return snapshot

    async def _snapshot(self) -> Snapshot | None:
        """Everything; None if what was called unchanged cannot be believed."""
        nodes_asked_at = self._clock.steady()
        await self.nodes()
        jobs_asked_at = self._clock.steady()
        self._jobs = await self._changed("jobs", self._read.jobs, self._jobs)
        if not await self._read_reservations():
            return None
        self._partitions = await self._changed("partitions", self._read.partitions, self._partitions)
        return Snapshot(
            nodes=self._nodes.records,
            jobs=self._jobs.records,
            jobs_by_node=self._jobs.by_node,
            nodes_asked_at=nodes_asked_at,
            jobs_asked_at=jobs_asked_at,
            reservations=self._reservations,
            partitions=self._partitions.records,
            cluster=self._nodes.cluster,
            release=self._nodes.release,
            clock_behind=self._clock_behind,
            unstarted_since=self._unstarted_since,
        )

    async def _changed(self, name: str, read: Callable[[int], Awaitable[L | None]], before: L) -> L:
        mark = self._marks.get(name)
        found = await read(mark.since if mark is not None else 0)
        if found is None:
            return before
        self._marks[name] = _Mark(found.last_update, self._clock.monotonic())
        return found

    async def _read_reservations(self) -> bool:
        """Whether no mark is ahead of slurmctld's clock, as it is after nodes and jobs were asked for."""
        asked_at = self._clock.monotonic()
        found = await self._read.reservations()
        clock, records = (found.last_update, found.records) if found is not None else (0, {})
        if records != self._reservations:
            self._reservations = records
        self._clock_behind = self._clock.steady() - datetime.fromtimestamp(max(0, clock), UTC)
        return not any(mark.is_ahead(clock, asked_at) for mark in self._marks.values())
