"""Ids of jobs as `squeue` prints them: `4`, the task `4_0`, the waiting tasks `4_[1-3]`, the part `5+1`."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from slurm_operator.slurm.hostlist import HostlistError, expand
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.jobs.job import SlurmJob

_ID = re.compile(
    r"(?P<base>\d{1,10})(?:_(?:(?P<task>\d{1,10})|\[(?P<tasks>[\d,%:-]+)\]))?(?:\+(?P<part>\d{1,4}))?"
)


class JobId(NamedTuple):
    """Which job somebody means. A task or a part that is not named is any."""

    base: int
    task: int | None = None
    tasks: str = ""
    part: int | None = None


def read_id(text: str) -> JobId | None:
    """None when it is no id of a job."""
    found = _ID.fullmatch(text.strip())
    if found is None:
        return None
    task, part = found["task"], found["part"]
    return JobId(
        int(found["base"]),
        int(task) if task is not None else None,
        found["tasks"] or "",
        int(part) if part is not None else None,
    )


def written_id(found: JobDetail) -> str:
    """As `squeue` writes it."""
    job = found.job
    if job.het_job_id is not None:
        return f"{job.het_job_id}+{found.het_offset}"
    if job.array_job_id is None:
        return str(job.job_id)
    if job.array_task_id is not None:
        return f"{job.array_job_id}_{job.array_task_id}"
    return f"{job.array_job_id}_[{job.array_tasks}]" if job.array_tasks else str(job.array_job_id)


def meant(wanted: JobId, jobs: Iterable[JobDetail]) -> list[JobDetail]:
    """The jobs of this id, those that wait first: an array or a heterogeneous job has several records."""
    found = [one for one in jobs if _is_meant(wanted, one)]
    return sorted(
        found, key=lambda one: (not one.job.state.is_pending, one.job.state.is_finished, one.job.job_id)
    )


def _is_meant(wanted: JobId, found: JobDetail) -> bool:
    job = found.job
    if wanted.part is not None:
        return job.het_job_id == wanted.base and found.het_offset == wanted.part
    if wanted.task is not None:
        is_task = job.array_task_id == wanted.task or wanted.task in waiting_tasks(job)
        return job.array_job_id == wanted.base and is_task
    if wanted.tasks:
        return job.array_job_id == wanted.base and job.array_task_id is None
    return wanted.base in (job.job_id, job.array_job_id, job.het_job_id)


def waiting_tasks(job: SlurmJob) -> Sequence[int]:
    """The tasks that one record of an array stands for: `1-3,7` of `1-3,7%2`."""
    listed = job.array_tasks.partition("%")[0].strip("[]")
    if job.array_task_id is not None or not listed:
        return ()
    try:
        return [int(name[1:]) for name in expand(f"t[{listed}]")]
    except (HostlistError, ValueError):  # A step, as in 0-9:2, or a list that was cut off.
        return ()
