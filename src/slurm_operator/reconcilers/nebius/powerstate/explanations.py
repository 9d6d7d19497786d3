"""Why a worker that Slurm waits for is not up, for its reason in Slurm, its status, and owners of jobs."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.reconcilers.nebius.powerstate.observe import Seen, Worker
from slurm_operator.reconcilers.nebius.powerstate.wishes import FAILED_CAUSE, Wish, has_failed, wish
from slurm_operator.reconcilers.shared.composed import state
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.reasons import OurReason, sanitised
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.wire_words import BETWEEN_NOTES, DOES_NOT_START, NOTE_OF_START, note_of_start

# An autoscaler of Kubernetes nodes makes room within minutes; before that a pending pod is no news.
TELL_AFTER: Final = timedelta(minutes=1)

# A worker that did not start is left alone for a while; then the next job may try it again.
REST: Final = timedelta(minutes=5)

_IN_VAIN: Final = "its slurmd did not register in time"
_LONGEST: Final = 200


def why_not_up(worker: Worker, seen: Seen, now: datetime) -> str:
    """What keeps a worker that is wanted from being up; empty when nothing does, or it has just begun."""
    is_failed = worker.record is not None and wish(worker) is Wish.FAILED
    found = _trouble(worker, seen, now) if worker.is_active or is_failed else ""
    if found or not is_failed:
        return found
    former = worker.said.message if worker.said is not None else ""
    return former or _IN_VAIN  # By now the pod that had the trouble may be gone.


def _trouble(worker: Worker, seen: Seen, now: datetime) -> str:
    if worker.pod is None:
        return _not_made(seen)
    if worker.pod.is_ready:
        return ""
    made_at = worker.pod.metadata.creation_timestamp
    is_new = made_at is not None and now - made_at < TELL_AFTER
    return "" if is_new else _short("; ".join(troubles([worker.pod])))


def told_in(worker: Worker, now: datetime) -> timedelta | None:
    """When a pod that is not ready yet counts as one in trouble."""
    made_at = worker.pod.metadata.creation_timestamp if worker.pod is not None else None
    if made_at is None or worker.pod is None or worker.pod.is_ready:
        return None
    left = made_at + TELL_AFTER - now
    return left if left > timedelta(0) else None


def _not_made(seen: Seen) -> str:
    """Why no pod is there, in the words of whoever refused it: a quota, or an admission policy."""
    if seen.part is None:
        return ""
    told = state(seen.part)
    is_old = seen.part.status.observed_generation < seen.part.metadata.generation
    return _short(f"no pod was made: {told.message}") if told.is_degraded and not is_old else ""


def _short(text: str) -> str:
    plain = sanitised(text).replace(BETWEEN_NOTES, " ")
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1].rstrip()}…"


def failure_reason(why: str) -> str:
    """What stands in Slurm in place of `ResumeTimeout reached`."""
    return str(OurReason(cause=FAILED_CAUSE, text=why))


def notes(seen: Seen, why: Mapping[str, str]) -> Iterator[tuple[SlurmJob, str]]:
    """Jobs whose admin comment has to change, and what it says then. `why` is by Slurm node."""
    if not isinstance(seen.slurm, Snapshot):
        return
    ours = {worker.slurm_node for worker in seen.workers}
    waiting = {job_id for node in why for job_id in seen.slurm.jobs_by_node.get(node, ())}
    told = {job.job_id for job in seen.slurm.jobs.values() if DOES_NOT_START in job.admin_comment}
    for job_id in sorted(waiting | told):
        job = seen.slurm.jobs[job_id]
        wanted = with_notes(job, ours, why)
        if wanted != job.admin_comment:
            yield job, wanted


def with_notes(job: SlurmJob, ours: set[str], why: Mapping[str, str]) -> str:
    """Its comment with a note for each worker of ours that it waits for; those of others stay.

    A job that was requeued keeps its note while the worker is out of service: it says what became of it.
    """
    parts = [(part, NOTE_OF_START.match(part)) for part in job.admin_comment.split(BETWEEN_NOTES) if part]
    noted = {found["node"] for _, found in parts if found is not None}
    kept = [part for part, found in parts if found is None or found["node"] not in ours]
    about = [node for node in why if node in job.own_nodes or node in noted]
    return BETWEEN_NOTES.join([*kept, *(note_of_start(node, why[node]) for node in sorted(about))])


def rests_for(worker: Worker, seen: Seen, now: datetime) -> timedelta:
    """How long a worker that did not start is left alone yet; one that did not fail is not."""
    record = worker.record
    if record is None or record.reason_changed_at is None or not has_failed(record):
        return timedelta(0)
    behind = seen.slurm.clock_behind if isinstance(seen.slurm, Snapshot) else timedelta(0)
    return record.reason_changed_at + behind + REST - now
