"""One Slurm cluster as the runtime sees it: facts to look at, writes to hand in."""

import asyncio
from collections.abc import Callable, Sequence

from slurm_operator.clock import Clock, SystemClock
from slurm_operator.manifests.objects import Unread
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Changes, Snapshot, Unreachable
from slurm_operator.slurm.writes import SlurmWrite, WriteResult
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.tokens import KeyProvider, ReadyToken
from slurm_operator.slurmrest.transport import DEADLINE_SECONDS
from slurm_operator.slurmsync.books import Books
from slurm_operator.slurmsync.pending_writes import Ledger
from slurm_operator.slurmsync.poller import SlurmPoller
from slurm_operator.slurmsync.remove_nodes import Guard
from slurm_operator.slurmsync.writer import SlurmWriter

_OPEN = "it has not ended"


class SlurmCluster:
    """Start `run` in a task and cancel it to end. Several URLs are several slurmrestds of one cluster."""

    def __init__(
        self,
        name: str,
        urls: Sequence[str],
        key: KeyProvider | ReadyToken,
        *,
        may_write: Callable[[], bool],
        clock: Clock | None = None,
        deadline_s: float = DEADLINE_SECONDS,
        user: str = "slurm",
        authorities: str = "",
    ) -> None:
        clock = clock or SystemClock()
        ledger = Ledger()
        self.name = name
        self.client = SlurmRest(
            urls, key, now=clock.now, user=user, deadline_s=deadline_s, authorities=authorities
        )
        self.poller = SlurmPoller(self.client, clock, ledger)
        self.books = Books(self.client, clock)
        self.writer = SlurmWriter(self.client, self.poller, ledger, clock, may_write)

    def latest(self) -> Snapshot | Unreachable:
        """What can be relied on at this moment. Never waits."""
        return self.poller.latest()

    def job_end(self, job_id: int) -> tuple[EndedJob, ...] | Unread:
        """How a job ended, or the tasks of an array; nothing where neither slurmctld nor accounting know it.

        Accounting is asked where slurmctld has forgotten it. Never waits.
        """
        facts = self.poller.latest()
        if isinstance(facts, Unreachable):
            return Unread(why=facts.why)
        if self.poller.is_open(job_id):
            return Unread(why=_OPEN)
        if found := self.poller.ended(job_id):
            return found
        entry = self.books.entry(job_id)
        if entry.read_at is None:
            return Unread(why="accounting has not answered yet")
        return Unread(why=entry.why) if entry.why else entry.ends

    def request_polling(self, who: str, *, soon: bool) -> None:
        """`who` waits for something to happen in Slurm, or no longer does."""
        self.poller.request_polling(who, soon=soon)

    async def refresh(self) -> None:
        """Returns when it was read again, if that is possible."""
        await self.poller.refresh()

    def use(self, urls: Sequence[str]) -> None:
        """Other slurmrestds of the same cluster; what is known of it stays."""
        self.client.use(urls)
        self.poller.read_again()

    def subscribe(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Calls back after every round with what it changed, often nothing. Gives the way to stop that."""
        return self.poller.subscribe(callback)

    async def write(self, write: SlurmWrite, guard: Guard | None = None) -> WriteResult:
        """Comes back when it is known what became of it; does not raise for what Slurm says."""
        return await self.writer.write(write, guard)

    async def run(self) -> None:
        """Reads and writes until cancelled; whoever still waits for a write is then told so."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.poller.run())
            group.create_task(self.writer.run())
            group.create_task(self.books.run())
