"""A Slurm job as slurmctld last described it."""

from datetime import datetime, timedelta

from slurm_operator import wire
from slurm_operator.slurm.states import JobBase, JobState


class SlurmJob(wire.Record):
    """One job of the job list; what only the scheduler cares about (priority, estimates) is left out."""

    job_id: int
    state: JobState
    name: str = ""
    user: str = ""
    user_id: int = 0
    account: str = ""
    partition: str = ""
    qos: str = ""
    state_reason: str = ""
    nodes: tuple[str, ...] = ()
    required_nodes: tuple[str, ...] = ()
    excluded_nodes: tuple[str, ...] = ()
    batch_host: str = ""
    reservation: str = ""
    features: str = ""
    gres: str = ""
    comment: str = ""
    admin_comment: str = ""
    extra: str = ""
    array_job_id: int | None = None
    array_task_id: int | None = None
    array_tasks: str = ""
    het_job_id: int | None = None
    cpus: int = 0
    node_count: int = 0
    is_requeueable: bool = False
    is_held: bool = False
    restarts: int = 0
    submit_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    time_limit: timedelta | None = None

    @property
    def address(self) -> str:
        """Names this job alone, to whoever ends it.

        The last task of an array has the array's own id, and by that slurmctld ends all of its tasks (seen).
        """
        if self.array_job_id is None or self.array_task_id is None:
            return str(self.job_id)
        return f"{self.array_job_id}_{self.array_task_id}"

    @property
    def requeue_address(self) -> str:
        """The same for going back into the queue, where a heterogeneous job goes as a whole or not at all.

        slurmctld takes the id of its first part for that, and refuses those of the others (error 2107).
        """
        return self.address if self.het_job_id is None else str(self.het_job_id)

    @property
    def is_on_its_way_out(self) -> bool:
        """It has been ended or requeued, and only the end of its processes is awaited."""
        return self.state.is_completing or JobBase.PENDING in self.state.words

    @property
    def own_nodes(self) -> tuple[str, ...]:
        """The nodes that it is on. While the list is empty, its batch host is the one that is known."""
        if not self.batch_host or self.batch_host in self.nodes:
            return self.nodes
        return (self.batch_host, *self.nodes)

    @property
    def named_nodes(self) -> frozenset[str]:
        """Every node it runs on, ran on or insists on: none of their records may be deleted under it."""
        return frozenset({*self.own_nodes, *self.required_nodes})

    @property
    def deadline(self) -> datetime | None:
        """When it ends at the latest; None when it may run forever or has not begun."""
        if self.start_time is None or self.time_limit is None:
            return None
        try:
            return self.start_time + self.time_limit
        except OverflowError:  # A limit of thousands of years: slurmctld takes any.
            return None
