"""What Slurm says of a job that somebody asks about: more than anybody decides by, finished jobs too."""

from datetime import datetime

from slurm_operator import wire
from slurm_operator.slurm.jobs.job import SlurmJob


class JobDetail(wire.Record):
    """A job with the scheduler's guesses, and with how it ended.

    `requested` are its resources as Slurm writes them, of all its nodes together: `cpu=4,mem=8G,node=2`.
    """

    job: SlurmJob
    expected_start: datetime | None = None
    eligible_since: datetime | None = None
    requested: str = ""
    het_offset: int = 0
    return_code: int | None = None
    signal: str = ""
