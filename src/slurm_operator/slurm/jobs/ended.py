"""How a job ended: what slurmctld still knows of it, or accounting."""

from datetime import datetime

from slurm_operator import wire
from slurm_operator.slurm.states import JobState


class EndedJob(wire.Record):
    """One job that is over. A task of an array, or a part of a heterogeneous job, is one of its own."""

    job_id: int
    state: JobState
    nodes: tuple[str, ...] = ()
    reason: str = ""
    end_time: datetime | None = None
