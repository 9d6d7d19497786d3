"""The operator's way to slurmctld: the faces of Reader and Sender, without HTTP, with all its ambiguities."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from simulation.jobs import Job
from simulation.slurmctld import Slurmctld
from simulation.weather import Weather
from simulation.wires import arriving
from slurm_operator.slurm import writes
from slurm_operator.slurm.conf.merge import worker_pairs
from slurm_operator.slurm.features import features
from slurm_operator.slurm.health import ControllerPing
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import jobs_by_node
from slurm_operator.slurmrest import errors
from slurm_operator.slurmrest.reader import JobListing, Listing
from slurm_operator.slurmrest.tokens import Keys
from slurm_operator.slurmrest.versions import Capability
from testing.virtual_time import PROCESS, Process

T = TypeVar("T")

DEADLINE_SECONDS = 5.0  # The real one is 12; a shorter one leaves more room for other things to go wrong.
WAKES_WITHIN_SECONDS = 2.5  # How long after waking up a hung slurmctld is busy with what piled up.
# A write that nobody heard of takes effect within Slurm's MessageTimeout, whose default this is.
MESSAGE_TIMEOUT_SECONDS = 10.0
OURS = "slurm"


class SimulatedRest:
    """`wrote` hears of each write when it takes effect: what, which nodes, and when they were last read before."""

    def __init__(
        self,
        ctld: Slurmctld,
        weather: Weather,
        wrote: Callable[[str, Sequence[str], float], None],
        calls: Callable[[], None],
    ) -> None:
        self.ctld = ctld
        self.calls = calls
        self.weather = weather
        self.wrote = wrote
        self.is_away = False
        self.slow_seconds = 0.0  # What every call takes at least.
        self.serves: Callable[[], bool] = lambda: True  # Whether any slurmrestd runs.
        self.key = b""  # What slurmctld checks tokens with; empty takes all of them.
        self.offered = Keys(b"")  # What they are signed with.
        self.late: list[Callable[[], None]] = []
        self.read = Reading(self)
        self.send = Writing(self)
        self.url = "http://simulated"
        self.version = "v0.0.45"
        self.nodes_read_at = 0.0
        self.arrived: Callable[[Process | None, str], None] = lambda process, attempt: None

    def can(self, capability: Capability) -> bool:
        return capability.is_in(self.version)

    def next_url(self) -> None:
        pass

    def use(self, urls: Sequence[str]) -> None:
        """Wherever it is asked, it is the same one."""

    def wake_up(self) -> None:
        """slurmctld hangs no longer, and carries out what was sent to it meanwhile."""
        loop = asyncio.get_running_loop()
        for effect in self.late:
            loop.call_later(self.weather.seconds("late write", WAKES_WITHIN_SECONDS), _quietly(effect))
        self.late.clear()

    def carry_out_late(self, effect: Callable[[], None]) -> Callable[[], None]:
        """Unless slurmctld hangs or is away by then."""

        def carry_out() -> None:
            if self.ctld.is_hung:
                self.late.append(effect)
            elif self.ctld.is_up:
                _quietly(effect)()

        return carry_out

    async def reach(self, attempt: str, effect: Callable[[], T]) -> T:
        """What became of it there, or why it did not get there."""
        self.calls()

        def arrive() -> T:
            is_down = self.is_away or not self.serves() or not self.ctld.is_up
            if is_down or self.weather.strikes(f"slurm lost {attempt}"):
                raise errors.SlurmUnreachable(attempt, "connection refused")
            if self.key and not self._is_accepted():
                raise errors.SlurmUnauthorised(attempt, "authentication failure")
            return effect()

        seconds = 0.001 + self.slow_seconds + self.weather.seconds("way to slurmctld", 0.5)
        return await arriving(seconds, arrive)

    def _is_accepted(self) -> bool:
        """As in a session: one more try, with the next key, when the first was not taken."""
        if self.offered() != self.key:
            self.offered.turn()
        return self.offered() == self.key

    async def come_back(self, attempt: str) -> None:
        await asyncio.sleep(0.001 + self.weather.seconds("way from slurmctld", 0.3))
        if self.weather.strikes(f"slurm answer {attempt}"):
            raise errors.SlurmCutOff(attempt, "connection reset")

    async def time_out(self, attempt: str) -> None:
        await asyncio.sleep(DEADLINE_SECONDS)
        raise errors.SlurmTimedOut(attempt, "no answer")


def _quietly(effect: Callable[[], None]) -> Callable[[], None]:
    def carry_out() -> None:
        with contextlib.suppress(errors.SlurmFailure):  # Whoever asked has long gone.
            effect()

    return carry_out


class Reading:
    def __init__(self, rest: SimulatedRest) -> None:
        self._rest = rest

    async def nodes(self, since: int = 0) -> Listing | None:
        def nodes() -> Listing:
            self._rest.nodes_read_at = asyncio.get_running_loop().time()
            ctld = self._rest.ctld
            return Listing(ctld.nodes(), ctld.clock, "sim", "26.05.5")

        return await self._list("read the nodes", since, nodes)

    async def jobs(self, since: int = 0) -> JobListing | None:
        def jobs() -> JobListing:
            shown = [job.shown() for job in self._rest.ctld.jobs.values()]
            unfinished = {job.job_id: job for job in shown if job.state.is_unfinished}
            return JobListing(unfinished, jobs_by_node(unfinished.values()), self._rest.ctld.clock)

        return await self._list("read the jobs", since, jobs)

    async def reservations(self, since: int = 0) -> Listing | None:
        ctld = self._rest.ctld
        return await self._list(
            "read the reservations", since, lambda: Listing(dict(ctld.reservations), ctld.clock)
        )

    async def partitions(self, since: int = 0) -> Listing | None:
        ctld = self._rest.ctld
        return await self._list(
            "read the partitions", since, lambda: Listing(dict(ctld.partitions), ctld.clock)
        )

    async def ping(self) -> tuple[ControllerPing, ...]:
        is_up = await self._rest.reach("ping", lambda: self._rest.ctld.is_up)
        return (ControllerPing(hostname="slurm-controller-0", is_primary=True, is_responding=is_up),)

    async def slurmctld_parameters(self) -> tuple[str, ...]:
        return await self._rest.reach("read the configuration", lambda: self._rest.ctld.parameters)

    async def _list(self, attempt: str, since: int, listed: Callable[[], Any]) -> Any:
        rest = self._rest

        def found() -> tuple[bool, Any]:
            if rest.ctld.is_hung:
                return True, None
            return False, None if since and rest.ctld.is_unchanged(since) else listed()

        is_hung, answer = await rest.reach(attempt, found)
        if is_hung:
            await rest.time_out(attempt)
        await rest.come_back(attempt)
        return answer


class Writing:
    def __init__(self, rest: SimulatedRest) -> None:
        self._rest = rest

    async def update_nodes(self, attempt: str, nodes: Sequence[str], fields: Mapping[str, Any]) -> None:
        def update() -> None:
            unknown = [name for name in nodes if name not in self._rest.ctld.records]
            if unknown:
                raise errors.UnknownNode(attempt, f"Invalid node name specified: {unknown[0]}")
            refused = [name for name in nodes if not self._update(name, fields)]
            if refused:
                raise errors.SlurmRefused(attempt, "Invalid node state transition (error 2180)")

        await self._write(attempt, nodes, update)

    def _update(self, name: str, fields: Mapping[str, Any]) -> bool:
        """Whether it takes that: only what is drained or down can be resumed. The others are, all the same."""
        ctld = self._rest.ctld
        record = ctld.records[name]
        if fields.get("state") == ["RESUME"] and not (record.is_drain or record.is_down):
            return False
        match fields.get("state"):
            case ["DRAIN"]:
                ctld.drain(name, fields["reason"], OURS)
            case ["DOWN"]:
                ctld.set_down(name, fields["reason"], OURS)
            case ["UNDRAIN" | "RESUME" as word]:
                ctld.resume(name, OURS, from_down=word == "RESUME")
            case None:
                record.features = tuple(fields.get("features") or record.features)
                record.comment = fields.get("comment", record.comment)
                record.topology = fields.get("topology_str", record.topology)
                ctld._changed(f"{OURS} updates {name}")
            case other:
                raise AssertionError(f"nobody taught this Slurm about {other}")
        return True

    async def add_nodes(self, nodes: Sequence[str], conf: str) -> None:
        """All or nothing."""
        attempt = f"add {', '.join(nodes)}"
        said = {pair.key.lower(): pair.value for pair in worker_pairs(conf)}

        def add() -> None:
            if there := [node for node in nodes if node in self._rest.ctld.records]:
                raise errors.SlurmRefused(attempt, f"Node already exists: {there[0]}")
            for node in nodes:
                self._rest.ctld.add(node, int(said.get("cpus", 1)), features(said.get("features", "")), OURS)

        await self._write(attempt, nodes, add)

    async def delete_nodes(self, nodes: Sequence[str]) -> None:
        """As seen: whoever can go goes, and then the first refusal is told, without a name."""
        attempt = f"delete the nodes {', '.join(nodes)}"

        def delete() -> None:
            refusals = [refusal for node in nodes if (refusal := self._refusal_to_delete(attempt, node))]
            if refusals:
                raise refusals[0]

        await self._write(attempt, nodes, delete)

    def _refusal_to_delete(self, attempt: str, node: str) -> errors.SlurmRefused | None:
        if node not in self._rest.ctld.records:
            return errors.UnknownNode(attempt, "Invalid node name specified")
        try:
            self._rest.ctld.delete(node, OURS)
        except errors.SlurmRefused as refusal:
            return refusal
        return None

    async def reconfigure(self) -> None:
        await self._write("reconfigure", [], lambda: self._rest.ctld.reconfigure())

    async def reserve(self, wanted: writes.Reserve) -> None:
        def reserve() -> None:
            ctld = self._rest.ctld
            old = ctld.reservations.get(wanted.name)
            start = wanted.start_time or (old.start_time if old else ctld.now)
            length = wanted.duration or (old.end_time - old.start_time if old else timedelta(hours=1))
            flags = frozenset(wanted.flags) - {"FORCE_START"} or (old.flags if old else frozenset())
            ctld.reserve(
                Reservation(
                    name=wanted.name,
                    start_time=start,
                    end_time=start + length,
                    nodes=tuple(wanted.nodes),
                    users=tuple(wanted.users) or (old.users if old else ()),
                    flags=flags,
                )
            )

        await self._write(f"reserve {wanted.name}", [], reserve)

    async def unreserve(self, name: str) -> None:
        await self._write(f"delete the reservation {name}", [], lambda: self._rest.ctld.unreserve(name))

    async def update_job(self, job_id: int, fields: Mapping[str, Any]) -> None:
        """Here an id is that of one job, in an array too (seen)."""

        def update() -> None:
            job = self._rest.ctld.jobs.get(job_id)
            if job is None or job.is_over:
                raise errors.UnknownJob(f"update job {job_id}", "Invalid job id specified")
            job.admin_comment = fields.get("admin_comment", "")
            self._rest.ctld._changed(f"job {job_id} has a comment")

        await self._write(f"update job {job_id}", [], update)

    async def requeue_job(self, address: str, *, hold: bool = False) -> None:
        attempt = f"requeue job {address}"

        def requeue() -> None:
            alive = [job for job in self._jobs(attempt, address) if job.is_alive]
            if not alive:
                raise errors.JobPending(attempt, "Job is pending execution (error 2024)")
            for job in alive:
                self._rest.ctld.requeue(job, "the operator asked")

        await self._write(attempt, [], requeue)

    async def cancel_job(self, address: str) -> None:
        attempt = f"cancel job {address}"

        def cancel() -> None:
            for job in self._jobs(attempt, address):
                self._rest.ctld.cancel(job)

        await self._write(attempt, [], cancel)

    def _jobs(self, attempt: str, address: str) -> list[Job]:
        jobs = [job for job in self._rest.ctld.addressed(address) if not job.is_over]
        if not jobs:
            raise errors.UnknownJob(attempt, "Invalid job id specified")
        return jobs

    async def _write(self, attempt: str, nodes: Sequence[str], effect: Callable[[], None]) -> None:
        """Now, or when a hung slurmctld wakes up; then nobody is told."""
        rest, process = self._rest, PROCESS.get()
        read_at = rest.nodes_read_at

        def noted() -> None:
            rest.wrote(attempt, nodes, read_at)
            effect()

        def arrive() -> bool:
            """Whether it is answered."""
            rest.arrived(process, attempt)
            if rest.ctld.is_hung:
                rest.late.append(noted)
                return False
            if rest.weather.delays(attempt):
                self._put_off(attempt, noted)
                return False
            noted()
            return True

        if not await rest.reach(attempt, arrive):
            await rest.time_out(attempt)
        await rest.come_back(attempt)

    def _put_off(self, attempt: str, effect: Callable[[], None]) -> None:
        """It happens later, or now and once more later."""
        rest = self._rest
        if rest.weather.share(f"twice {attempt}") < 0.5:
            _quietly(effect)()
        late = MESSAGE_TIMEOUT_SECONDS * rest.weather.share(f"how late {attempt}")
        asyncio.get_running_loop().call_later(DEADLINE_SECONDS + late, rest.carry_out_late(effect))
