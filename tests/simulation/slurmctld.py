"""slurmctld in memory, as it was seen to behave: what it believes, and what it is asked to do.

A second registration keeps the record; a slurmd that is gone looks alive for a while; a node with a job cannot be
deleted; a second drain replaces the reason; without its state it knows nobody, while processes live on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from simulation.jobs import Job
from simulation.weather import Weather
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.states import NodeState
from slurm_operator.slurmrest import errors
from testing.virtual_time import EPOCH

SILENT_AFTER = timedelta(seconds=8)
DOWN_AFTER = timedelta(seconds=15)
FORGETS_JOBS_AFTER = timedelta(seconds=20)
JOBS_PER_NODE = 2


@dataclass
class Record:
    """What slurmctld has written down about a node."""

    name: str
    pod_uid: str
    address: str
    started_at: datetime | None
    cpus: int = 8
    is_drain: bool = False
    is_down: bool = False
    is_inherited: bool = False  # It was given up before the slurmd that registered last had started.
    is_silent: bool = False
    is_invalid: bool = False
    reason: str = ""
    set_by: str = ""
    changed_at: datetime | None = None
    gone_since: datetime | None = None
    features: tuple[str, ...] = ()
    comment: str = ""
    topology: str = ""
    epilog_until: datetime | None = None  # The epilog of a job that is no longer in the list.
    is_off: bool = False  # Made before any slurmd registered with it.


@dataclass
class Slurmctld:
    """`tells` hears, in a line, of everything that changes."""

    weather: Weather
    now: datetime
    tells: Callable[[str], None] = lambda line: None
    records: dict[str, Record] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    orphans: list[Job] = field(default_factory=list)  # Forgotten, but their processes live.
    reservations: dict[str, Reservation] = field(default_factory=dict)
    partitions: dict[str, Partition] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    is_up: bool = True
    is_hung: bool = False
    behind: timedelta = timedelta(0)  # By so much its clock is behind everybody else's.
    stamp: int = 0  # When anything last changed, by its own clock.
    made: int = 0
    configures_for: float = 0.0  # How long a prolog may take; 0 is none that anybody sees.
    changed_at: datetime = EPOCH
    suspended_reads_idle: bool = True
    returns_to_service: bool = True  # ReturnToService=2; without it a record that was given up stays DOWN.
    reread: Callable[[], None] = lambda: None  # Brings what its files say now.
    cuts_off: Callable[[Job], None] = lambda job: (
        None
    )  # Told of jobs whose partition is no longer configured.

    # ---- Daemons and time

    def register(
        self,
        name: str,
        pod_uid: str,
        address: str,
        cpus: int,
        features: tuple[str, ...],
        began: datetime | None = None,
    ) -> None:
        """`began`: when its container started."""
        record = self.records.get(name)
        if record is None:
            record = self.records[name] = Record(name, pod_uid, address, self.now, cpus, features=features)
        record.pod_uid, record.address, record.started_at = pod_uid, address, self.now
        record.is_silent, record.gone_since, record.is_off = False, None, False
        if self.returns_to_service:
            self._return_to_service(record)
        elif record.is_down and record.changed_at is not None:
            record.is_inherited = record.changed_at < (began or self.now)
        record.is_invalid = cpus < record.cpus
        if record.is_invalid and not record.is_drain:
            self._mark(record, "Low CPUs", "slurm", is_drain=True)
        self.orphans = [job for job in self.orphans if pod_uid not in job.processes.values()]
        for job in self.jobs.values():
            if job.is_alive and job.processes.get(name, pod_uid) != pod_uid:
                self.requeue(job, "its node came back without it")
        self._changed(f"{name} registers")

    def pass_time(self, now: datetime, living: set[str]) -> None:
        """`living` are the uids of pods whose slurmd runs."""
        seconds = (now - self.now).total_seconds()
        self.now = now
        for job in [*self.jobs.values(), *self.orphans]:
            if job.state == "RUNNING":
                job.left -= seconds
        self.orphans = [job for job in self.orphans if job.left > 0]
        if not self.is_up or self.is_hung:
            return
        for job in list(self.jobs.values()):
            self._grow_older(job)
        for record in self.records.values():
            self._listen(record, record.is_off or record.pod_uid in living)
        self._schedule(living)

    def _grow_older(self, job: Job) -> None:
        if job.configures_until is not None and (job.configures_until <= self.now or not job.is_alive):
            job.configures_until = None
            self._changed(f"job {job.job_id} is configured")
        if job.state == "RUNNING" and job.left <= 0:
            self._end(job, "COMPLETED")
        if job.completing_until is not None and job.completing_until <= self.now:
            job.completing_until = None
            self._leave_epilog(job)
            self._changed(f"job {job.job_id} is off its nodes")
        if job.is_over and job.ended_at is not None and self.now - job.ended_at > FORGETS_JOBS_AFTER:
            del self.jobs[job.job_id]

    def _leave_epilog(self, job: Job) -> None:
        """A node may be busy with what a job left behind for a little longer than the job is in the list."""
        for record in (self.records[name] for name in job.nodes if name in self.records):
            late = self.weather.seconds(f"epilog on {record.name}", 5.0)
            record.epilog_until = self.now + timedelta(seconds=late) if late > 1.5 else None

    def has_epilog(self, record: Record) -> bool:
        return record.epilog_until is not None and record.epilog_until > self.now

    def _listen(self, record: Record, is_living: bool) -> None:
        record.gone_since = None if is_living else record.gone_since or self.now
        silent_for = self.now - record.gone_since if record.gone_since is not None else timedelta(0)
        if record.is_silent != (silent_for >= SILENT_AFTER):
            record.is_silent = not record.is_silent
            self._changed(f"{record.name} {'is silent' if record.is_silent else 'answers'}")
        if record.epilog_until is not None and record.epilog_until <= self.now:
            record.epilog_until = None
            self._changed(f"the epilog on {record.name} is over")
        is_lost = record.is_down and record.reason.endswith("Not responding") and not record.is_inherited
        if is_living and is_lost:  # Slurm does it, or somebody who looks after nodes that fell silent.
            self._return_to_service(record)
            self._changed(f"{record.name} is back in service")
        if is_living and record.is_invalid and not record.is_drain:  # Each registration is looked at again.
            self._mark(record, "Low CPUs", "slurm", is_drain=True)
            self._changed(f"slurmctld refuses {record.name} again")
        if silent_for >= DOWN_AFTER and not record.is_down:
            record.is_down = True
            self._give_up(record)
            self._changed(f"{record.name} is DOWN")
            for job in self.jobs_on(record.name):
                self.requeue(job, "its node is down")

    def _give_up(self, record: Record) -> None:
        """It says so behind the reason of a drain, whoever gave that."""
        is_told = bool(record.reason) and record.is_drain
        record.reason = f"{record.reason} : Not responding" if is_told else record.reason or "Not responding"
        record.set_by, record.changed_at = "slurm", self.now

    def _return_to_service(self, record: Record) -> None:
        """ReturnToService=2: a node that is heard again is up again."""
        record.is_down = record.is_inherited = False
        if record.reason == "Not responding" and not record.is_drain:
            record.reason = ""

    def _schedule(self, living: set[str]) -> None:
        for job in sorted(self.jobs.values(), key=lambda job: -job.priority):
            if job.state != "PENDING" or job.completing_until is not None:
                continue
            open_ = [record for record in self.records.values() if self._is_open(record, job, living)]
            free = [record for record in open_ if self._has_room(record, job)]
            chosen = [r for r in free if r.name in job.required]
            chosen += [r for r in free if r.name not in job.required]
            if len(chosen) >= job.width and all(name in {r.name for r in chosen} for name in job.required):
                self._start(job, chosen[: max(job.width, len(job.required))])
            elif job.priority:
                self._preempt(job, [r for r in open_ if not job.required or r.name in job.required])

    def _preempt(self, job: Job, records: list[Record]) -> None:
        """Those of less priority go back into the queue; their place is free when they have ended."""
        for record in records:
            others = [other for other in self.jobs_on(record.name) if other.state == "RUNNING"]
            weaker = [other for other in others if other.priority < job.priority and other.is_requeueable]
            if weaker and len(weaker) == len(others):
                for other in weaker if job.is_exclusive else weaker[:1]:
                    self.requeue(other, f"job {job.job_id} preempts it")
                return

    def _has_room(self, record: Record, job: Job) -> bool:
        there = self.jobs_on(record.name)
        if job.is_exclusive or any(other.is_exclusive for other in there):
            return not there
        return len(there) < JOBS_PER_NODE

    def _is_open(self, record: Record, job: Job, living: set[str]) -> bool:
        if record.is_drain or record.is_down or record.is_silent or record.pod_uid not in living:
            return False
        partition = self.partitions.get(job.partition)
        if self.partitions and (partition is None or not partition.takes_jobs):
            return False
        reserved = (r for r in self.reservations.values() if record.name in r.nodes and r.is_active(self.now))
        return not any(reserved)

    def _start(self, job: Job, chosen: list[Record]) -> None:
        job.state, job.nodes = "RUNNING", tuple(record.name for record in chosen)
        job.processes = {record.name: record.pod_uid for record in chosen}
        job.started_at, job.left = self.now, job.seconds
        if self.configures_for:
            late = self.weather.seconds(f"prolog of {job.job_id}", self.configures_for)
            job.configures_until = self.now + timedelta(seconds=late)
        self._changed(f"job {job.job_id} starts on {', '.join(job.nodes)}")

    def _end(self, job: Job, state: str) -> None:
        had_processes = job.is_alive
        job.state, job.ended_at, job.processes = state, self.now, {}
        if had_processes:
            epilog = self.weather.seconds(f"epilog of {job.job_id}", 6.0)
            job.completing_until = self.now + timedelta(seconds=epilog) if epilog > 0.5 else None
        self._changed(f"job {job.job_id} is {state}")

    def jobs_on(self, name: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.holds_nodes and name in job.nodes]

    def addressed(self, address: str) -> list[Job]:
        """As seen: the id of an array means all its tasks, though the last of them has it too; ID_TASK the one.

        The id of the first part of a heterogeneous job means all of its parts.
        """
        head, _, task = address.partition("_")
        if pack := [job for job in self.jobs.values() if job.het_job_id == int(head)]:
            return pack
        tasks = [job for job in self.jobs.values() if job.array_job_id == int(head)]
        if task:
            return [job for job in tasks if job.array_task_id == int(task)]
        return tasks or [job for job in self.jobs.values() if job.job_id == int(head)]

    # ---- What people do to jobs

    def submit(self, seconds: float, width: int = 1, **fields) -> Job:
        self.made += 1
        job = self.jobs[self.made] = Job(self.made, width, seconds, self.now, **fields)
        self._changed(f"job {job.job_id} is submitted for {seconds:.0f} s")
        return job

    def suspend(self, job: Job) -> None:
        job.state = "SUSPENDED"
        self._changed(f"job {job.job_id} is suspended")

    def wake(self, job: Job) -> None:
        job.state = "RUNNING"
        self._changed(f"job {job.job_id} goes on")

    def cancel(self, job: Job) -> None:
        self._end(job, "CANCELLED")

    def shrink(self, job: Job) -> None:
        """`scontrol update job NumNodes=`: it gives its last node up, with what ran there."""
        *kept, given_up = job.nodes
        job.nodes = tuple(kept)
        job.processes.pop(given_up, None)
        self._changed(f"job {job.job_id} gives {given_up} up")

    def run_out_of_memory(self, job: Job) -> None:
        """The kernel ends a process of it, and slurmd the rest."""
        self._end(job, "OUT_OF_MEMORY")

    def requeue(self, job: Job, why: str) -> None:
        """Back into the queue; its nodes stay COMPLETING until its processes are gone."""
        self._end(job, "PENDING")
        job.restarts, job.started_at, job.ended_at = job.restarts + 1, None, None
        if job.completing_until is None:
            job.nodes = ()
        self.tells(f"job {job.job_id} goes back into the queue: {why}")

    # ---- What is asked about nodes

    def drain(self, name: str, reason: str, who: str) -> None:
        self._mark(self.records[name], reason, who, is_drain=True)
        self._changed(f"{who} drains {name}: {reason}")

    def resume(self, name: str, who: str, *, from_down: bool = True) -> None:
        """As RESUME; or, not `from_down`, as UNDRAIN: what is DOWN stays so, with its reason."""
        record = self.records[name]
        record.is_drain, record.is_down = False, record.is_down and not from_down
        if not record.is_down:
            record.reason, record.set_by, record.changed_at, record.is_inherited = "", "", self.now, False
        self._changed(f"{who} resumes {name}")

    def set_down(self, name: str, reason: str, who: str) -> None:
        record = self.records[name]
        record.is_down = True
        self._mark(record, reason, who, is_drain=record.is_drain)
        self._changed(f"{who} sets {name} down: {reason}")
        for job in self.jobs_on(name):
            if job.is_alive:
                self.requeue(job, f"{who} set its node down")

    def add(self, name: str, cpus: int, features: tuple[str, ...], who: str) -> None:
        """A record of State=CLOUD. No job is sent there before a slurmd registers."""
        if name in self.records:
            raise errors.SlurmRefused(f"add {name}", "Node already exists")
        self.records[name] = Record(name, "", name, None, cpus, features=features, is_off=True)
        self._changed(f"{who} adds a record of {name}")

    def delete(self, name: str, who: str) -> None:
        # Seen: the real one lets a node go on which a job is merely suspended.
        is_busy = any(job.state != "SUSPENDED" for job in self.jobs_on(name))
        if is_busy or self.has_epilog(self.records[name]):
            raise errors.NodesBusy(f"delete the node {name}", "Requested nodes are busy (error 2016)")
        del self.records[name]
        self._changed(f"{who} deletes the record of {name}")

    def lose_state(self) -> None:
        """It starts with an empty state directory: nodes and jobs are forgotten, processes live on."""
        self.orphans += [job for job in self.jobs.values() if job.is_alive]
        self.records, self.jobs, self.reservations = {}, {}, {}
        self._changed("slurmctld has lost its state")

    def reconfigure(self) -> None:
        """Reads its files again, and so do the slurmds, which restart themselves for that."""
        self.reread()
        for record in self.records.values():
            if not record.is_silent:
                record.started_at = self.now
        self._changed("slurmctld is reconfigured")

    def configure(self, partitions: dict[str, Partition]) -> None:
        """Jobs of a partition that is no longer there end at once, silently."""
        self.partitions = partitions
        for job in list(self.jobs.values()):
            if not job.is_over and not any(name in partitions for name in job.partition.split(",")):
                self.cuts_off(job)
                self._end(job, "CANCELLED")

    def reserve(self, reservation: Reservation) -> None:
        self.reservations[reservation.name] = reservation
        self._changed(f"reservation {reservation.name}")

    def unreserve(self, name: str) -> None:
        if self.reservations.pop(name, None) is None:
            raise errors.UnknownReservation(f"delete the reservation {name}", "no such reservation")
        self._changed(f"no reservation {name} any more")

    def _mark(self, record: Record, reason: str, who: str, *, is_drain: bool) -> None:
        record.is_drain, record.reason, record.set_by, record.changed_at = is_drain, reason, who, self.now

    @property
    def clock(self) -> int:
        """What it says the time is."""
        return int((self.now - self.behind).timestamp())

    def is_unchanged(self, since: int) -> bool:
        """As in its source: by its own clock, whatever that was before."""
        return since > self.stamp

    @property
    def unchanged_for(self) -> float:
        """Seconds since anything changed here."""
        return (self.now - self.changed_at).total_seconds()

    def _changed(self, line: str) -> None:
        self.stamp, self.changed_at = self.clock, self.now
        self.tells(line)

    # ---- What it says

    def nodes(self) -> dict[str, SlurmNode]:
        return {record.name: self.node(record) for record in self.records.values()}

    def node(self, record: Record) -> SlurmNode:
        reserved = [r.name for r in self.reservations.values() if record.name in r.nodes]
        return SlurmNode(
            name=record.name,
            state=NodeState.of(*self._words(record)),
            address=record.address,
            reason=record.reason,
            reason_set_by=record.set_by,
            reason_changed_at=record.changed_at,
            slurmd_start_time=record.started_at.replace(microsecond=0)
            if record.started_at is not None
            else None,
            features=record.features,
            active_features=record.features,
            comment=record.comment,
            topology=record.topology,
            cpus=record.cpus,
            effective_cpus=record.cpus,
            reservation=reserved[0] if reserved else "",
        )

    def _words(self, record: Record) -> Iterator[str]:
        jobs = self.jobs_on(record.name)
        runs = [job for job in jobs if job.state == "RUNNING"]
        stops = [job for job in jobs if job.state == "SUSPENDED" and not self.suspended_reads_idle]
        if record.is_down:
            yield "DOWN"
        elif runs or stops:
            is_full = len(runs) == JOBS_PER_NODE or any(job.is_exclusive for job in runs)
            yield "ALLOCATED" if is_full else "MIXED"
        else:
            yield "IDLE"
        yield "DYNAMIC_NORM"
        flags = {
            "DRAIN": record.is_drain,
            "NOT_RESPONDING": record.is_silent,
            "POWERED_DOWN": record.is_off,
            "INVALID_REG": record.is_invalid,
            "COMPLETING": self.has_epilog(record) or any(job.completing_until is not None for job in jobs),
            "MAINTENANCE": any(
                "MAINT" in r.flags and record.name in r.nodes and r.is_active(self.now)
                for r in self.reservations.values()
            ),
        }
        yield from (flag for flag, is_set in flags.items() if is_set)
