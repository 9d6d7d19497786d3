"""Jobs as slurmctld keeps them, and where their processes really are."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.states import JobState

ALIVE = ("RUNNING", "SUSPENDED")


@dataclass
class Job:
    """`processes`: Slurm node to the uid of the pod in which it runs, whatever slurmctld believes."""

    job_id: int
    width: int
    seconds: float
    submitted_at: datetime
    partition: str = "all"
    required: tuple[str, ...] = ()
    is_requeueable: bool = True
    priority: int = 0  # One with more sends others back into the queue where there is no room for it.
    is_exclusive: bool = False
    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None  # The first part of the heterogeneous job that it is a part of.
    configures_until: datetime | None = None  # Its nodes get ready for it; its prolog runs.
    state: str = "PENDING"
    nodes: tuple[str, ...] = ()
    processes: dict[str, str] = field(default_factory=dict)
    started_at: datetime | None = None
    left: float = 0.0  # Seconds of work that are left.
    completing_until: datetime | None = None
    admin_comment: str = ""
    restarts: int = 0
    ended_at: datetime | None = None

    @property
    def is_alive(self) -> bool:
        """It has processes, running or stopped."""
        return self.state in ALIVE

    @property
    def holds_nodes(self) -> bool:
        return self.is_alive or self.completing_until is not None

    @property
    def words(self) -> tuple[str, ...]:
        if self.configures_until is not None:
            return (self.state, "CONFIGURING")
        return (self.state, "COMPLETING") if self.completing_until is not None else (self.state,)

    @property
    def is_over(self) -> bool:
        return self.state not in ("PENDING", *ALIVE) and self.completing_until is None

    @property
    def is_told_by_host(self) -> bool:
        """Of some jobs only the batch host tells where they are."""
        return len(self.nodes) == 1 and self.job_id % 4 == 1

    def shown(self) -> SlurmJob:
        return SlurmJob(
            job_id=self.job_id,
            state=JobState.of(*self.words),
            user="ada",
            partition=self.partition,
            nodes=self.nodes if self.holds_nodes and not self.is_told_by_host else (),
            required_nodes=self.required,
            batch_host=self.nodes[0] if self.nodes and self.holds_nodes else "",
            array_job_id=self.array_job_id,
            array_task_id=self.array_task_id,
            het_job_id=self.het_job_id,
            admin_comment=self.admin_comment,
            is_requeueable=self.is_requeueable,
            restarts=self.restarts,
            start_time=self.started_at,
            time_limit=timedelta(seconds=self.seconds + 3600),
        )
