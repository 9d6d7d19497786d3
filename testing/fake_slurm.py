"""A Slurm cluster in memory: nodes that register, jobs that start, end and are suspended, and nothing else.

It behaves as slurmctld was seen to: a second registration keeps the record, a node whose slurmd is gone looks
alive for a while, a node with a job cannot be deleted, and after a loss of its state it knows nobody.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from slurm_operator.safety.write_screening import screen
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState
from slurm_operator.slurm.writes import (
    AddNodes,
    CancelJob,
    DeleteNodes,
    DrainNodes,
    ExplainNodes,
    NodeWrite,
    PowerNodes,
    Reconfigure,
    RequeueJob,
    Reserve,
    ResumeNodes,
    SignalJob,
    SlurmWrite,
    Unreserve,
    UpdateJob,
    UpdateNodes,
)

SILENT_AFTER = timedelta(seconds=8)
DOWN_AFTER = timedelta(seconds=15)


class Refused(Exception):  # noqa: N818 - what slurmctld answers
    """slurmctld said no."""


@dataclass
class Record:
    """What slurmctld has written down about a node."""

    name: str
    pod_uid: str
    address: str
    started_at: datetime | None
    is_drain: bool = False
    is_down: bool = False
    is_silent: bool = False
    reason: str = ""
    set_by: str = ""
    changed_at: datetime | None = None
    gone_since: datetime | None = None
    features: tuple[str, ...] = ()
    comment: str = ""
    topology: str = ""
    is_off: bool = False  # Made before any slurmd registered, or switched off by power saving.
    is_powering_up: bool = False  # A job waits for its slurmd.
    conf: str = ""


@dataclass
class Job:
    job_id: int
    width: int
    seconds: int
    ends_at: datetime | None = None
    state: str = "PENDING"
    nodes: tuple[str, ...] = ()
    processes: dict[str, str] = field(default_factory=dict)  # Slurm node to the uid of the pod it runs in.
    is_requeueable: bool = True
    admin_comment: str = ""
    array_job_id: int | None = None
    array_task_id: int | None = None

    @property
    def runs(self) -> bool:
        return self.state in ("RUNNING", "SUSPENDED")


@dataclass
class FakeSlurm:
    now: datetime
    records: dict[str, Record] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    orphans: list[Job] = field(default_factory=list)  # Their slurmctld lost its state, their processes live.
    written_at: dict[str, int] = field(default_factory=dict)
    clock: int = 0
    returns_to_service: bool = True  # ReturnToService=2; without it a record that was given up stays DOWN.

    # ---- What daemons and time do

    def register(self, name: str, pod_uid: str, address: str) -> None:
        """slurmd introduces itself. The record of a name stays; steps that slurmctld does not know are killed."""
        record = self.records.setdefault(name, Record(name, pod_uid, address, self.now, features=("gpu",)))
        record.pod_uid, record.address, record.started_at = pod_uid, address, self.now
        record.is_silent, record.gone_since, record.is_off = False, None, False
        record.is_powering_up = False
        if self.returns_to_service:
            record.is_down = False
            if record.reason == "Not responding" and not record.is_drain:
                record.reason = ""
        self.orphans = [job for job in self.orphans if pod_uid not in job.processes.values()]
        for job in self.jobs.values():
            if job.runs and name in job.processes and job.processes[name] != pod_uid:
                self.back_to_queue(job)

    def back_to_queue(self, job: Job) -> None:
        job.state, job.nodes, job.processes, job.ends_at = "PENDING", (), {}, None

    def pass_time(self, now: datetime, alive: set[str]) -> None:
        """`alive` are the uids of pods whose slurmd runs."""
        self.now = now
        for job in self.jobs.values():
            if job.state == "RUNNING" and job.ends_at is not None and job.ends_at <= now:
                job.state = "COMPLETED"
        self.orphans = [job for job in self.orphans if job.ends_at is None or job.ends_at > now]
        for record in self.records.values():
            # Of one that is off nothing is expected.
            is_there = record.is_off or record.is_powering_up or record.pod_uid in alive
            record.gone_since = None if is_there else record.gone_since or now
            self._notice_silence(record)
        self._schedule(alive)

    def _notice_silence(self, record: Record) -> None:
        silent_for = self.now - record.gone_since if record.gone_since is not None else timedelta(0)
        record.is_silent = silent_for >= SILENT_AFTER
        if silent_for >= DOWN_AFTER and not record.is_down:
            record.is_down = True
            self._give_up(record)
            for job in self.jobs.values():
                if job.runs and record.name in job.nodes:
                    self.back_to_queue(job)

    def _give_up(self, record: Record) -> None:
        """It says so behind the reason of a drain, whoever gave that."""
        is_told = bool(record.reason) and record.is_drain
        record.reason = f"{record.reason} : Not responding" if is_told else record.reason or "Not responding"
        record.set_by, record.changed_at = "slurm", self.now

    def _schedule(self, alive: set[str]) -> None:
        for job in self.jobs.values():
            free = [r for r in self.records.values() if self._is_free(r, alive)]
            if job.state == "PENDING" and len(free) >= job.width:
                chosen = free[: job.width]
                job.state, job.nodes = "RUNNING", tuple(record.name for record in chosen)
                job.processes = {record.name: record.pod_uid for record in chosen}
                job.ends_at = self.now + timedelta(seconds=job.seconds)

    def _is_free(self, record: Record, alive: set[str]) -> bool:
        bad = record.is_drain or record.is_down or record.is_silent or record.pod_uid not in alive
        bad = bad or record.is_off or record.is_powering_up
        return not bad and not any(job.runs and record.name in job.nodes for job in self.jobs.values())

    def lose_state(self) -> None:
        """slurmctld starts with an empty state directory: nodes and jobs are forgotten, processes live on."""
        self.orphans += [job for job in self.jobs.values() if job.runs]
        self.records, self.jobs = {}, {}

    # ---- What people and the operator do

    def drain(self, name: str, reason: str, who: str) -> None:
        record = self.records[name]
        record.is_drain, record.reason, record.set_by, record.changed_at = True, reason, who, self.now

    def resume(self, name: str, *, from_down: bool = True) -> None:
        """As RESUME; or, not `from_down`, as UNDRAIN: what is DOWN stays so, with its reason."""
        record = self.records[name]
        record.is_drain, record.is_down = False, record.is_down and not from_down
        if not record.is_down:
            record.reason, record.changed_at = "", self.now

    def write(self, write: SlurmWrite) -> None:
        """As the one writer would: screened against the nodes as they are. Raises Refused."""
        if isinstance(write, UpdateJob | RequeueJob | CancelJob) and write.job_id not in self.jobs:
            raise Refused(f"there is no job {write.job_id}")
        match write:
            case UpdateJob(job_id=job_id, admin_comment=comment):
                self.jobs[job_id].admin_comment = comment or ""
            case RequeueJob(address=address):
                for job in self._addressed(address):
                    self.back_to_queue(job)
            case CancelJob(address=address):
                for job in self._addressed(address):
                    job.state = "CANCELLED"
            case SignalJob() | Reconfigure() | Reserve() | Unreserve():
                raise AssertionError(f"nobody taught this Slurm about {type(write).__name__}")
            case _:
                self._write_nodes(write)

    def _addressed(self, address: str) -> list[Job]:
        """The id of an array means all its tasks, though one of them has it too; ID_TASK means the one."""
        head, _, task = address.partition("_")
        tasks = [job for job in self.jobs.values() if job.array_job_id == int(head)]
        if task:
            return [job for job in tasks if job.array_task_id == int(task)]
        return tasks or [self.jobs[int(head)]]

    def _write_nodes(self, write: NodeWrite) -> None:
        send, answers = screen(write, {record.name: self._node(record) for record in self.records.values()})
        for name in send:
            self._write_node(write, name)
        bad = [answer.message for answer in answers.values() if not answer.is_good]
        if bad:
            raise Refused("; ".join(bad))

    def _write_node(self, write: NodeWrite, name: str) -> None:
        self.clock += 1
        self.written_at[name] = self.clock
        match write:
            case DrainNodes(reason=reason):
                self.drain(name, reason, "slurm")
            case ResumeNodes(from_down=from_down):
                self.resume(name, from_down=from_down)
            case DeleteNodes():
                if any(job.runs and name in job.nodes for job in self.jobs.values()):
                    raise Refused(f"{name}: Requested nodes are busy")
                del self.records[name]
            case AddNodes(conf=conf):
                made = Record(name, "", name, None, features=("gpu",), is_off=True, conf=conf)
                self.records[name] = made
            case ExplainNodes(reason=reason):
                self.records[name].reason, self.records[name].changed_at = reason, self.now
            case PowerNodes(up=False):
                self.records[name].is_off = True
            case UpdateNodes():
                record = self.records[name]
                record.features = write.features if write.features is not None else record.features
                record.comment = write.comment if write.comment is not None else record.comment
                record.topology = write.topology if write.topology is not None else record.topology
            case _:
                raise AssertionError(f"nobody taught this Slurm about {type(write).__name__}")

    # ---- What can be read

    def snapshot(self) -> tuple[Snapshot, int]:
        """Everything as it is, and how many writes it has seen."""
        jobs = [_job(job) for job in self.jobs.values() if job.state not in ("COMPLETED", "CANCELLED")]
        found = Snapshot(
            nodes={record.name: self._node(record) for record in self.records.values()},
            jobs={job.job_id: job for job in jobs},
            jobs_by_node=jobs_by_node(jobs),
            nodes_asked_at=self.now,
            jobs_asked_at=self.now,
        )
        return found, self.clock

    def behind(self, clock: int) -> frozenset[str]:
        return frozenset(name for name, at in self.written_at.items() if at > clock)

    def _node(self, record: Record) -> SlurmNode:
        # A suspended job holds no CPU, so its node reads IDLE: only the job list knows it.
        is_busy = any(job.state == "RUNNING" and record.name in job.nodes for job in self.jobs.values())
        words = ["DOWN" if record.is_down else "MIXED" if is_busy else "IDLE", "DYNAMIC_NORM"]
        words += ["DRAIN"] if record.is_drain else []
        words += ["NOT_RESPONDING"] if record.is_silent else []
        words += ["CLOUD"] if record.conf else []
        words += ["POWERED_DOWN"] if record.is_off else []
        words += ["POWERING_UP", "NOT_RESPONDING"] if record.is_powering_up else []
        return SlurmNode(
            name=record.name, state=NodeState.of(*words), address=record.address, reason=record.reason,
            reason_set_by=record.set_by, reason_changed_at=record.changed_at, slurmd_start_time=record.started_at,
            features=record.features, active_features=record.features, comment=record.comment,
            topology=record.topology, **_sizes(record.conf),
        )  # fmt: skip


def _sizes(conf: str) -> dict[str, Any]:
    said = dict(word.split("=", 1) for word in conf.split())
    cpus, memory = int(said.get("CPUs", 0)), int(said.get("RealMemory", 0))
    return {"cpus": cpus, "effective_cpus": cpus, "real_memory_mb": memory}


def _job(job: Job) -> SlurmJob:
    start = job.ends_at - timedelta(seconds=job.seconds) if job.ends_at is not None else None
    return SlurmJob(
        job_id=job.job_id, state=JobState.of(job.state), user="ada", nodes=job.nodes, start_time=start,
        time_limit=timedelta(seconds=job.seconds), is_requeueable=job.is_requeueable,
        admin_comment=job.admin_comment, array_job_id=job.array_job_id, array_task_id=job.array_task_id,
    )  # fmt: skip
