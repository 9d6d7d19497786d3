"""Jobs that hold up a worker for longer than the drain policy allows. Only here is a job ever ended.

Nobody's job is ended unless the manifest asks for exactly that, and then only on a worker that leaves, after
a deadline that counts from our own drain, and after its owner was told. Where somebody else ends the worker,
by deleting its pod, its jobs end with it: what may be requeued is, right before, and the owners read why.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.shared.worker_parts import DrainPolicy, DrainType
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Action, WriteSlurm
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.plan.step import Step, look
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.worker import job_notices
from slurm_operator.reconcilers.nodeset.worker.drain_causes import LEAVING, Cause, Leaving
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import PROOF_LIFETIME
from slurm_operator.safety.job_end_check import Ending
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import CancelJob, JobWrite, RequeueJob, UpdateJob

A_SECOND = timedelta(seconds=1)

# Before this version of the REST API a job cannot be requeued.
REQUEUES_SINCE = "v0.0.45"

# So many jobs are ended in one pass, those whose time ran out first: each is a request, and who changes their
# mind meanwhile has saved the others.
MOST_ENDED = 50

# So long before the kubelet ends a pod that was deleted, its jobs go back into the queue.
BEFORE_THE_POD_ENDS = timedelta(seconds=10)


@dataclass(frozen=True)
class Holdup:
    """A job on a worker that leaves: when and how it ends, and why.

    `ends_at` is told to its owner, `due_at` is the same by our own clock: a drain is dated by slurmctld's.
    """

    job: SlurmJob
    worker: Worker
    cause: Cause
    ends_at: datetime
    due_at: datetime
    write: JobWrite | None  # None when nothing can be done for it.
    why: str
    drained_for: str = ""  # The reason of the drain that started its clock; none where a pod was deleted.

    @property
    def fate(self) -> str:
        match self.write:
            case RequeueJob():
                return "requeued"
            case None:
                return "ended with it"
            case _:
                return "cancelled"


def overdue_at(worker: Worker, policy: DrainPolicy) -> datetime | None:
    """When jobs have held up this worker for too long, by slurmctld's clock; None when nobody counts.

    Only a drain of ours that sends the worker away starts the clock: not a human's, and not a cordon of its
    machine, which says nothing about how long jobs may stay.
    """
    record = worker.record
    if policy.deadline is None or record is None or not record.is_drained_by_us:
        return None
    ours = worker.drain
    if ours is None or ours.cause not in LEAVING or not worker.is_drained_itself:
        return None
    return record.reason_changed_at + policy.deadline if record.reason_changed_at is not None else None


def _due_at(worker: Worker, policy: DrainPolicy) -> datetime | None:
    """The same by our own clock: jobs would end early by as much as that is ahead of slurmctld's."""
    end, slurm = overdue_at(worker, policy), worker.slurm
    return end + slurm.clock_behind if end is not None and isinstance(slurm, Snapshot) else None


def overdue(seen: Seen, now: datetime) -> list[Worker]:
    """Workers that are held up for longer than the policy allows."""
    policy = seen.nodeset.spec.drain_policy
    ends = ((worker, _due_at(worker, policy)) for worker in seen.workers if worker.jobs)
    return [worker for worker, end in ends if end is not None and end <= now]


def ended_jobs(seen: Seen, leaving: Mapping[str, Cause], now: datetime) -> list[Lane]:
    """A lane for each job that the policy is about: told in good time, ended when the time has come."""
    if not isinstance(seen.slurm, Snapshot):
        return []
    holdups = _holdups(seen, leaving)
    first = sorted(_due(holdups.values(), now), key=lambda it: it.due_at)[:MOST_ENDED]
    ending = {holdup.job.job_id for holdup in first}
    ours = {worker.slurm_node for worker in seen.workers} if holdups else set[str]()
    told = [_lane(holdup, seen, ours, now, ends=job_id in ending) for job_id, holdup in holdups.items()]
    return [*told, *_withdrawn(seen, set(holdups), min(now, now - seen.slurm.clock_behind))]


def _due(holdups: Iterable[Holdup], now: datetime) -> list[Holdup]:
    """Those that end now."""
    return [holdup for holdup in holdups if holdup.due_at <= now and holdup.write is not None]


def look_again(seen: Seen, leaving: Mapping[str, Cause], now: datetime) -> Step:
    """When the policy has something to do or to say; nothing else would wake us then.

    What is due may be late when it is sent, or have to wait for its turn.
    """
    if _due(_holdups(seen, leaving).values(), now):
        return look([A_SECOND])
    policy = seen.nodeset.spec.drain_policy
    held_up = [worker for worker in seen.workers if worker.uid in leaving and worker.jobs]
    ends = [end for worker in held_up for end in (_due_at(worker, policy), _pod_ends_at(worker))]
    return look(end - now for end in ends if end is not None)


def _holdups(seen: Seen, leaving: Mapping[str, Cause]) -> dict[int, Holdup]:
    """By job; one that holds up several workers goes with the first of them to be overdue."""
    found: dict[int, Holdup] = {}
    for worker in seen.workers:
        if worker.uid not in leaving:
            continue
        for holdup in (*_of_policy(worker, leaving[worker.uid], seen), *_of_pod(worker, seen)):
            if not holdup.job.is_on_its_way_out:
                earlier = found.get(holdup.job.job_id, holdup)
                found[holdup.job.job_id] = min(holdup, earlier, key=lambda it: it.due_at)
    return found


def _of_policy(worker: Worker, cause: Cause, seen: Seen) -> Iterator[Holdup]:
    """What the manifest asks for."""
    policy = seen.nodeset.spec.drain_policy
    ends_at, due_at, record = overdue_at(worker, policy), _due_at(worker, policy), worker.record
    if ends_at is None or due_at is None or record is None or policy.type is DrainType.WAIT:
        return
    why = f"it held up {worker.slurm_node} ({cause.kind}) for longer than drainPolicy.deadline"
    for job in worker.jobs:
        write = _end(job, policy.type, seen.slurm)
        if write is not None:
            yield Holdup(job, worker, cause, ends_at, due_at, write, why, record.reason)


def _of_pod(worker: Worker, seen: Seen) -> Iterator[Holdup]:
    """What happens to its jobs when somebody deleted the pod, and its grace period runs out.

    Its own: jobs of its name are another pod's, when that one is registered by it.
    """
    ends_at = _pod_ends_at(worker)
    if ends_at is None or not worker.is_registered:
        return
    cause = Cause(Leaving.TERMINATING, f"somebody deleted pod {worker.name}")
    why = f"somebody deleted pod {worker.name}, and its grace period is over"
    for job in worker.jobs:
        yield Holdup(job, worker, cause, ends_at, ends_at, _end(job, DrainType.REQUEUE, seen.slurm), why)


def _pod_ends_at(worker: Worker) -> datetime | None:
    """When jobs on a deleted pod have to be out of the way; Kubernetes notes the end of its grace period."""
    ends = worker.pod.metadata.deletion_timestamp
    return ends - BEFORE_THE_POD_ENDS if ends is not None else None


def _end(job: SlurmJob, type_: DrainType, slurm: object) -> JobWrite | None:
    """Back into the queue where that is allowed; cancelled only where the manifest says Cancel."""
    can_requeue = isinstance(slurm, Snapshot) and (slurm.api_version or REQUEUES_SINCE) >= REQUEUES_SINCE
    if job.is_requeueable and can_requeue:
        return RequeueJob(job_id=job.job_id, address=job.requeue_address)
    return CancelJob(job_id=job.job_id, address=job.address) if type_ is DrainType.CANCEL else None


def _lane(holdup: Holdup, seen: Seen, ours: Collection[str], now: datetime, *, ends: bool) -> Lane:
    """First its owner is told; a job whose owner cannot be told is not ended."""
    stages: list[list[Action]] = []
    comment = _comment_with_notice(holdup, seen, ours)
    if comment != holdup.job.admin_comment:
        told = UpdateJob(job_id=holdup.job.job_id, admin_comment=comment)
        message = f"told {_owner(holdup.job)} that it holds up {holdup.worker.slurm_node}"
        stages.append([_write(seen, told, Reason.OWNER_TOLD, message)])
    if ends and holdup.write is not None and _is_fresh(holdup.worker, now):
        message = f"{holdup.fate} {_owner(holdup.job)}: {holdup.why}"
        stages.append([_write(seen, holdup.write, Reason.DRAIN_DEADLINE, message, _ending(holdup))])
    return lane(f"job {holdup.job.job_id}", *stages)


def _comment_with_notice(holdup: Holdup, seen: Seen, ours: Collection[str]) -> str:
    """The admin comment with its notice, in place of one about another worker of ours, or of nobody."""
    known = seen.slurm.nodes if isinstance(seen.slurm, Snapshot) else {}
    return job_notices.with_notice(
        holdup.job.admin_comment, _notice(holdup, seen), lambda node: node in ours or node not in known
    )


def _ending(holdup: Holdup) -> Ending:
    worker = holdup.worker
    return Ending(
        pod=key_of(worker.pod),
        pod_uid=worker.uid,
        slurm_node=worker.slurm_node,
        drained_for=holdup.drained_for,
    )


def _is_fresh(worker: Worker, now: datetime) -> bool:
    """As the gate wants it: after an older answer the job may run elsewhere by now."""
    slurm = worker.slurm
    return (
        isinstance(slurm, Snapshot)
        and slurm.is_fresh(now, PROOF_LIFETIME)
        and slurm.is_current(worker.slurm_node)
    )


def _notice(holdup: Holdup, seen: Seen) -> str:
    return job_notices.notice(
        holdup.worker.slurm_node,
        holdup.fate,
        holdup.ends_at,
        holdup.cause.kind,
        seen.nodeset.spec.drain_policy.message,
    )


def _withdrawn(seen: Seen, held: set[int], now: datetime) -> list[Lane]:
    """A notice that no longer holds is taken back: its worker stays after all, or the policy changed.

    One whose moment is over stays: a requeued job may run again on the next worker of the same name, and its
    owner should still read why it started again.
    """
    lanes: list[Lane] = []
    for worker in seen.workers:
        for job in worker.jobs:
            if job.job_id in held or job.is_on_its_way_out:
                continue
            if not job_notices.is_ahead(job.admin_comment, worker.slurm_node, now):
                continue
            left = job_notices.with_notice(job.admin_comment, "", {worker.slurm_node}.__contains__)
            kept = UpdateJob(job_id=job.job_id, admin_comment=left)
            message = f"told {_owner(job)} that it may stay on {worker.slurm_node}"
            lanes.append(lane(f"job {job.job_id}", [_write(seen, kept, Reason.OWNER_TOLD, message)]))
    return lanes


def _owner(job: SlurmJob) -> str:
    part = f", a part of {job.het_job_id}," if job.het_job_id not in (None, job.job_id) else ""
    return f"job {job.address}{part} of {job.user or job.user_id}"


def _write(
    seen: Seen, write: JobWrite, reason: Reason, message: str, ending: Ending | None = None
) -> WriteSlurm:
    return WriteSlurm(seen.controller_key, write, reason, message, ending=ending)
