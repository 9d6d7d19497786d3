"""What the final state of a Slurm job says about the check, and about the nodes that it ran on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slurm_operator.api.nebius.activecheck import ActiveCheck, JobResult
from slurm_operator.manifests.objects import Unread
from slurm_operator.reconcilers.nebius.activecheck.runs import FAILED as JOB_FAILED
from slurm_operator.reconcilers.nebius.activecheck.runs import Run
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.states import JobBase

# Words of `slurmJobsStatus.lastRunStatus`.
IN_PROGRESS, COMPLETE, FAILED = "InProgress", "Complete", "Failed"
CANCELLED, ERROR, SKIPPED = "Cancelled", "Error", "Skipped"

# What a run comes to is the first of these that a job of it came to.
_WORST: Final = (IN_PROGRESS, FAILED, ERROR, CANCELLED, COMPLETE)

NO_SLURM_JOB: Final = "No slurm job"

# The node let the check down: it answered no, did not answer in time, or was lost.
_BLAMED: Final = frozenset({JobBase.FAILED, JobBase.TIMEOUT, JobBase.NODE_FAIL, JobBase.BOOT_FAIL})
# The job says nothing about the node: it had too little memory, no turn, or had to leave for others.
# Whatever else there is counts as one of these.

# Whose node is known to be lost: the others of a job on many nodes are not to blame.
LOST: Final = frozenset({JobBase.NODE_FAIL, JobBase.BOOT_FAIL})

# A job that neither slurmctld nor accounting knows may not have reached accounting yet.
_ACCOUNTED_WITHIN: Final = timedelta(minutes=10)
_FORGOTTEN: Final = (
    "neither slurmctld nor accounting has a record of it; slurmctld forgets jobs after MinJobAge, and "
    "without accounting nobody else knows them"
)


@dataclass(frozen=True)
class Result:
    """How one job ended; one in progress says what it waits for."""

    job_id: int
    verdict: str
    nodes: tuple[str, ...] = ()
    state: str = ""
    reason: str = ""

    @property
    def is_final(self) -> bool:
        return self.verdict != IN_PROGRESS

    @property
    def text(self) -> str:
        return ": ".join(filter(None, [self.state, self.reason])) or self.verdict

    @property
    def as_job_result(self) -> JobResult:
        return JobResult(
            job_id=str(self.job_id),
            nodes=list(self.nodes),
            result=self.verdict,
            state=self.state,
            reason=self.reason,
        )


def verdict_of(state: str | None) -> str:
    """What a check comes to whose job ended in this state."""
    if state == JobBase.COMPLETED:
        return COMPLETE
    if state == JobBase.CANCELLED:
        return CANCELLED
    return FAILED if state in _BLAMED else ERROR


def result(job_id: int, found: Sequence[EndedJob] | Unread, run: Run, now: datetime) -> Result:
    """How a job of this run ended, by what is known of it."""
    if isinstance(found, Unread):
        return Result(job_id, IN_PROGRESS, reason=found.why)
    if not found:
        submitted = run.over_at or run.made_at
        if not run.is_over or submitted is None or now - submitted < _ACCOUNTED_WITHIN:
            return Result(job_id, IN_PROGRESS, reason="it is not in accounting yet")
        return Result(job_id, ERROR, reason=_FORGOTTEN)
    worst = min(found, key=lambda end: _WORST.index(verdict_of(end.state.base)))
    verdict = verdict_of(worst.state.base)
    blamed = [end for end in found if verdict_of(end.state.base) == verdict]
    nodes = tuple(dict.fromkeys(node for end in blamed for node in end.nodes))
    reason = worst.reason if worst.reason not in ("", "None") else ""
    return Result(job_id, verdict, nodes, worst.state.base or str(worst.state), reason)


def remembered(check: ActiveCheck, run: Run) -> dict[int, Result]:
    """What the status says of the jobs of this run that had ended: Slurm may have forgotten them since."""
    told = check.status.slurm_jobs_status
    if told.last_run_job != run.name:
        return {}
    return {
        int(one.job_id): Result(int(one.job_id), one.result, tuple(one.nodes), one.state, one.reason)
        for one in told.last_run_results
        if one.job_id.isdecimal() and one.result in _WORST[1:]
    }


def overall(run: Run, results: Sequence[Result]) -> str:
    """What the run comes to."""
    if run.skipped_because:
        return SKIPPED
    if not run.is_over:
        return IN_PROGRESS
    verdicts = {one.verdict for one in results}
    if run.state == JOB_FAILED or run.unreadable_ids or not results:
        verdicts.add(ERROR)
    return next(word for word in _WORST if word in verdicts)
