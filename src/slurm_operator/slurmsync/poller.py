"""Reads one Slurm cluster for everybody: one Snapshot, as fresh as somebody needs it and no fresher."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import structlog

from slurm_operator import wire
from slurm_operator.backoff import backoff_seconds
from slurm_operator.clock import Clock
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Changes, Snapshot, Unreachable, changes
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import NotServed, SlurmFailure, SlurmUnauthorised
from slurm_operator.slurmrest.versions import Capability
from slurm_operator.slurmsync.lists import Lists
from slurm_operator.slurmsync.pending_writes import MESSAGE_TIMEOUT_SECONDS, Ledger

# While somebody waits for Slurm, and while nobody does.
SOON_SECONDS = 1.0
IDLE_SECONDS = 15.0

# Reading takes a fifteenth of the time at most, however large the cluster: slurmctld has other work.
# One slow round may be a slurmctld that was just starting; two in a row are a large cluster.
COST_FACTOR = 15

LONGEST_BACKOFF_SECONDS = 10.0

# Older than this, or than two rounds and some patience, an answer says nothing about now.
TOO_OLD_SECONDS = 30.0

# Who answers the ping and which configuration is live changes seldom, and a dead standby makes the ping slow.
HEAD_EVERY_SECONDS = 30.0
HEAD_SOON_SECONDS = 3.0  # While somebody waits, it may be for a configuration to become live.

# Comparing this many records takes a few milliseconds, which is all the loop can spare.
_COMPARED_ON_LOOP = 2000

log = structlog.get_logger(__name__)


def pause_seconds(cost_s: float, *, soon: bool) -> float:
    """How long to leave Slurm alone after a round that took `cost_s`."""
    return max(SOON_SECONDS if soon else IDLE_SECONDS, COST_FACTOR * cost_s)


def failed_pause_seconds(failures: int) -> float:
    """How long to leave Slurm alone after so many failures in a row."""
    return backoff_seconds(failures - 1, first_seconds=1.0, longest_seconds=LONGEST_BACKOFF_SECONDS)


class SlurmPoller:
    """`latest()` is what is known now. Never more than one reading call is in flight."""

    def __init__(self, client: SlurmRest, clock: Clock, ledger: Ledger) -> None:
        self._client = client
        self._clock = clock
        self._ledger = ledger
        self._lists = Lists(client.read, clock)
        self._reading = asyncio.Lock()
        self._rounds = asyncio.Lock()  # One after the other: none tells old things after a newer one.
        self._next_round: asyncio.Future[None] | None = None
        self._stir = asyncio.Event()
        self._waiting: set[str] = set()
        self._subscribers: list[Callable[[Changes], None]] = []
        self._snapshot: Snapshot | None = None
        self._announced: Snapshot | Unreachable = Unreachable(since=clock.steady(), why="not read yet")
        self._why, self._is_refused = "", False
        self._failures = 0
        self._failed_cost_s = 0.0
        self._cost_s = self._last_cost_s = 0.0
        self._read_at = self._ended_at = clock.monotonic()
        self._head_at: float | None = None
        self._settled_from = 0.0  # By the monotonic clock; what is asked for then or later is.
        self._at_once = True

    def latest(self) -> Snapshot | Unreachable:
        """What can be relied on at this moment."""
        if self._snapshot is None:
            since = (
                self._announced.since if isinstance(self._announced, Unreachable) else self._clock.steady()
            )
            return Unreachable(since=since, why=self._why or "not read yet", is_refused=self._is_refused)
        age = self._clock.monotonic() - self._read_at
        if age > max(TOO_OLD_SECONDS, 2 * self._pause_s() + LONGEST_BACKOFF_SECONDS):
            why = self._why or f"the last answer is {age:.0f} s old"
            return Unreachable(since=self._snapshot.asked_at, why=why, is_refused=self._is_refused)
        if self._snapshot.behind != self._ledger.behind:
            self._snapshot = wire.replace(self._snapshot, behind=self._ledger.behind)
        return self._snapshot

    def ended(self, job_id: int) -> tuple[EndedJob, ...]:
        """How this job ended, while slurmctld has not forgotten it."""
        return self._lists.ended(job_id)

    def is_open(self, job_id: int) -> bool:
        """Whether something of this job, or of this array, is not finished."""
        return self._lists.is_open(job_id)

    def subscribe(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Calls back after every round with what it changed, often nothing. Gives the way to stop that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def request_polling(self, who: str, *, soon: bool) -> None:
        """`who` waits for something to happen in Slurm, or no longer does."""
        if soon:
            self._waiting.add(who)
        else:
            self._waiting.discard(who)
        self._stir.set()

    def read_again(self, *, head: bool = False) -> None:
        """Read at once: we have just changed something. With `head` also what slurmctld says of itself."""
        self._at_once = True
        if head:
            self._head_at = None
        self._stir.set()

    async def nodes_now(self, *, whole: bool = False) -> Mapping[str, SlurmNode]:
        """The nodes as of a request that starts after this call; `whole` does not settle for "unchanged"."""
        async with self._reading:
            if whole:
                self._lists.forget()
            return await self._lists.nodes()

    async def read_now(self) -> Snapshot | Unreachable:
        """What can be relied on, by requests that start after this call. Raises SlurmFailure."""
        try:
            await self._round()
        finally:
            self._ended_at = self._clock.monotonic()
        return self.latest()

    async def refresh(self) -> None:
        """Waits for a reading that starts after this call, if it can be had. Hundreds who ask share one."""
        if self._next_round is not None:
            await asyncio.shield(self._next_round)
            return
        shared = self._next_round = asyncio.get_running_loop().create_future()
        try:
            async with self._rounds:
                self._next_round = None  # Whoever asks from now on needs the one after it.
                with contextlib.suppress(SlurmFailure):
                    await self._read()
        finally:
            if self._next_round is shared:
                self._next_round = None
            self._ended_at = self._clock.monotonic()
            shared.set_result(None)

    async def run(self) -> None:
        """Reads until cancelled."""
        while True:
            await self.poll()
            while (left_s := self._left_s()) > 0:
                self._stir.clear()
                await self._clock.wait(self._stir, left_s)

    async def poll(self) -> None:
        """One round. Whatever goes wrong is kept as the reason why nothing is known."""
        self._at_once = False
        try:
            await self._round()
            await self._look_at_head()
        except SlurmFailure as failure:
            self._failed(failure)
        finally:
            self._ended_at = self._clock.monotonic()

    async def _round(self) -> None:
        async with self._rounds:
            await self._read()

    async def _read(self) -> None:
        async with self._reading:
            began_at = self._clock.monotonic()
            if self._ledger.has_unsure or self._failures:
                self._lists.forget()
            snapshot = await self._lists.snapshot()
        ended_at = self._clock.monotonic()
        cost_s = ended_at - began_at
        self._cost_s, self._last_cost_s = min(cost_s, self._last_cost_s), cost_s
        if self._failures and self._snapshot is not None:
            log.info("slurm client connected again", url=self._client.url, failures=self._failures)
        self._failures, self._why, self._is_refused = 0, "", False
        snapshot = self._with_head(snapshot)
        if self._snapshot is None:
            log.info("slurm client connected", url=self._client.url, version=self._client.version)
            # The first one is whole: a restart of ours must not look as if slurmctld had nothing to say.
            snapshot = await self._headed(snapshot)
            self._settled_from = self._clock.monotonic() + MESSAGE_TIMEOUT_SECONDS
        snapshot = wire.replace(snapshot, settles_at=self._settles_at(began_at))
        await self._publish(snapshot, (began_at, ended_at))

    def _settles_at(self, began_at: float) -> datetime | None:
        """When what was asked for then will have settled; None if it has."""
        left_s = self._settled_from - began_at
        return self._clock.steady() + timedelta(seconds=left_s) if left_s > 0 else None

    async def _look_at_head(self) -> None:
        """What is read less often, when it is time for it."""
        every_s = HEAD_SOON_SECONDS if self._waiting else HEAD_EVERY_SECONDS
        if self._head_at is not None and self._clock.monotonic() - self._head_at < every_s:
            return
        async with self._rounds:
            snapshot = self._snapshot
            headed = await self._headed(snapshot) if snapshot is not None else None
            if headed is not None and headed is not snapshot:
                await self._publish(headed)

    def _with_head(self, snapshot: Snapshot) -> Snapshot:
        """What is read less often, carried over."""
        old = self._snapshot
        return wire.replace(
            snapshot,
            pings=old.pings if old else (),
            slurmctld_parameters=old.slurmctld_parameters if old else None,
            is_config_known=old is not None and old.is_config_known,
            api_version=self._client.version,
            can_add_nodes=self._client.can(Capability.ADD_NODES),
            url=self._client.url,
        )

    async def _headed(self, snapshot: Snapshot) -> Snapshot:
        """With pings and live configuration. Nice to know: without an answer the rest still stands."""
        self._head_at = self._clock.monotonic()
        pings = snapshot.pings
        async with self._reading:
            configured = await self._configured(snapshot)
            try:
                pings = await self._client.read.ping()
            except SlurmFailure as failure:
                log.info("slurmctld not pinged", url=self._client.url, error=str(failure))
        return configured if pings == snapshot.pings else wire.replace(configured, pings=pings)

    async def _configured(self, snapshot: Snapshot) -> Snapshot:
        """With the live configuration, or as before. A dead standby makes the ping slow, but not this."""
        parameters: tuple[str, ...] | None = None
        try:
            parameters = await self._client.read.slurmctld_parameters()
        except NotServed:
            pass  # This version never says.
        except SlurmFailure as failure:
            log.info("slurmctld's configuration not read", url=self._client.url, error=str(failure))
            return snapshot
        if snapshot.is_config_known and parameters == snapshot.slurmctld_parameters:
            return snapshot
        return wire.replace(snapshot, slurmctld_parameters=parameters, is_config_known=True)

    async def _publish(self, snapshot: Snapshot, read: tuple[float, float] | None = None) -> None:
        """`read` is when nodes and jobs were, if they were. What that settles is settled with this snapshot.

        Were it a moment before, the one we have still would count as read since our last write.
        """
        old = self._announced
        if isinstance(old, Snapshot) and len(old.nodes) + len(old.jobs) > _COMPARED_ON_LOOP:
            found = await asyncio.to_thread(changes, old, snapshot)
        else:
            found = changes(old, snapshot)
        settled = frozenset[str]()
        if read is not None:
            self._read_at, settled = read[0], self._ledger.read(*read)
        self._snapshot = self._announced = wire.replace(snapshot, behind=self._ledger.behind)
        self._tell(wire.replace(found, nodes=found.nodes | settled))

    def _failed(self, failure: SlurmFailure) -> None:
        self._failures += 1
        self._failed_cost_s = failure.cost_seconds
        is_news = isinstance(failure, SlurmUnauthorised) != self._is_refused
        self._why, self._is_refused = str(failure), isinstance(failure, SlurmUnauthorised)
        if self._failures == 1:  # It is tried again every few seconds; saying so each time would help nobody.
            told = "lost slurmrestd" if self._snapshot is not None else "cannot connect"
            log.warning(f"slurm client {told}", url=self._client.url, error=self._why)
        self._client.next_url()
        facts = self.latest()
        is_first = isinstance(self._announced, Snapshot) or self._failures == 1
        if isinstance(facts, Unreachable) and (is_first or is_news):
            self._announced = facts
            self._tell(Changes(everything=True))

    def _tell(self, found: Changes) -> None:
        for callback in tuple(self._subscribers):
            callback(found)

    def _pause_s(self) -> float:
        return pause_seconds(self._cost_s, soon=bool(self._waiting))

    def _left_s(self) -> float:
        """Until the next round is due."""
        if self._at_once and not self._failures:
            return 0.0
        # Reading what cannot be used takes no more of our time than reading what can.
        failed_pause_s = max(failed_pause_seconds(self._failures), COST_FACTOR * self._failed_cost_s)
        pause_s = failed_pause_s if self._failures else self._pause_s()
        return self._ended_at + pause_s - self._clock.monotonic()
