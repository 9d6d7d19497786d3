"""How jobs ended that slurmctld has forgotten: asked of accounting, while somebody wants to know."""

import asyncio
from typing import NamedTuple

import structlog

from slurm_operator.clock import Clock
from slurm_operator.slurm.accounting import AccountedJob
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import NotServed, SlurmFailure

# What accounting does not know, or cannot be asked, is asked again after this long: its records come late.
AGAIN_SECONDS = 30.0

# What nobody has asked about for so long is forgotten.
KEPT_SECONDS = 600.0

log = structlog.get_logger(__name__)


class Entry(NamedTuple):
    """What accounting said of a job, and when; `why` it could not be asked, or has no end of it yet."""

    ends: tuple[EndedJob, ...] = ()
    why: str = ""
    read_at: float | None = None  # By the monotonic clock; None is: not yet.
    wanted_at: float = 0.0


class Books:
    """`entry` never waits: what is not known yet is asked for, and known to whoever asks later."""

    def __init__(self, client: SlurmRest, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._entries: dict[int, Entry] = {}
        self._stir = asyncio.Event()

    def entry(self, job_id: int) -> Entry:
        now = self._clock.monotonic()
        found = self._entries.get(job_id, Entry())._replace(wanted_at=now)
        self._entries[job_id] = found
        if self._is_due(found, now):
            self._stir.set()
        return found

    def _is_due(self, entry: Entry, now: float) -> bool:
        if entry.read_at is None:
            return True
        return not entry.ends and now - entry.read_at >= AGAIN_SECONDS

    async def run(self) -> None:
        """Asks until cancelled."""
        while True:
            await self._stir.wait()
            self._stir.clear()
            await self.read_due()

    async def read_due(self) -> None:
        now = self._clock.monotonic()
        self._entries = {
            job_id: entry for job_id, entry in self._entries.items() if now - entry.wanted_at < KEPT_SECONDS
        }
        for job_id in sorted(self._entries):
            if self._is_due(self._entries[job_id], self._clock.monotonic()):
                await self._read(job_id)

    async def _read(self, job_id: int) -> None:
        ends: tuple[EndedJob, ...] = ()
        why = ""
        try:
            ends, why = _told(await self._client.database.job(job_id))
        except NotServed:
            log.debug("there is no accounting to ask", job=job_id)
        except SlurmFailure as failure:
            why = f"accounting cannot be asked: {failure}"
        read_at = self._clock.monotonic()
        if job_id in self._entries:
            self._entries[job_id] = self._entries[job_id]._replace(ends=ends, why=why, read_at=read_at)


def _told(found: list[AccountedJob]) -> tuple[tuple[EndedJob, ...], str]:
    """How all of them ended, or which one has not."""
    for job in found:
        if not job.state.is_finished:
            return (), f"accounting has it as {job.state}"
    return tuple(_ended(job) for job in found), ""


def _ended(job: AccountedJob) -> EndedJob:
    return EndedJob(job_id=job.job_id, state=job.state, nodes=job.nodes, end_time=job.end_time)
