"""Jobs that hold up a worker for longer than the drain policy allows. Only here is a job ever ended.

Nobody's job is ended unless the manifest asks for exactly that, and then only on a worker that leaves, after
a deadline that counts from our own drain, and after its owner was told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurm_operator.api.workers import DrainPolicy, DrainType
from slurm_operator.plan.actions import Action, WriteSlurm
from slurm_operator.plan.gate import PROOF_LIFETIME
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.nodeset import notices
from slurm_operator.reconcilers.nodeset.causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.slurm.job import SlurmJob
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import CancelJob, JobWrite, RequeueJob, UpdateJob

# Before this version of the REST API a job cannot be requeued.
REQUEUES_SINCE = "v0.0.45"


@dataclass(frozen=True)
class Holdup:
    """A job on a worker that leaves: when and how the policy ends it."""

    job: SlurmJob
    member: Member
    cause: Cause
    ends_at: datetime
    write: JobWrite | None  # None when the policy lets it finish.


def overdue_at(member: Member, policy: DrainPolicy) -> datetime | None:
    """When jobs have held up this worker for too long; None when nobody counts.

    Only a drain of ours that sends the worker away starts the clock: not a human's, and not a cordon of its
    machine, which says nothing about how long jobs may stay.
    """
    record = member.record
    if policy.deadline is None or record is None or not record.is_drained_by_us:
        return None
    ours = OurReason.read(record.reason)
    if ours is None or ours.cause not in set(Leaving) or ours.pod_uid not in ("", member.uid):
        return None
    return record.reason_changed_at + policy.deadline if record.reason_changed_at is not None else None


def overdue(seen: Seen, now: datetime) -> list[Member]:
    """Workers that are held up for longer than the policy allows."""
    policy = seen.nodeset.spec.drain_policy
    ends = ((member, overdue_at(member, policy)) for member in seen.members if member.jobs)
    return [member for member, end in ends if end is not None and end <= now]


def ended_jobs(seen: Seen, leaving: Mapping[str, Cause], now: datetime) -> list[Lane]:
    """A lane for each job that the policy is about: told in good time, ended when the time has come."""
    if not isinstance(seen.slurm, Snapshot):
        return []
    holdups = _holdups(seen, leaving)
    told = [_lane(holdup, seen, now) for holdup in holdups.values()]
    return [*told, *_withdrawn(seen, set(holdups))]


def next_end(seen: Seen, leaving: Mapping[str, Cause], now: datetime) -> timedelta | None:
    """How long until the policy has something to do or to say; nothing else would wake us then."""
    policy = seen.nodeset.spec.drain_policy
    ends = [overdue_at(m, policy) for m in seen.members if m.uid in leaving and m.jobs]
    return min((end - now for end in ends if end is not None and end > now), default=None)


def _holdups(seen: Seen, leaving: Mapping[str, Cause]) -> dict[int, Holdup]:
    """By job; one that holds up several workers goes with the first of them to be overdue."""
    policy = seen.nodeset.spec.drain_policy
    found: dict[int, Holdup] = {}
    for member in seen.members:
        ends_at = overdue_at(member, policy) if member.uid in leaving else None
        if ends_at is None or policy.type is DrainType.WAIT:
            continue
        for job in member.jobs:
            holdup = Holdup(job, member, leaving[member.uid], ends_at, _end(job, policy.type, seen.slurm))
            if holdup.write is not None and not job.state.is_completing:
                found[job.job_id] = min(holdup, found.get(job.job_id, holdup), key=lambda it: it.ends_at)
    return found


def _end(job: SlurmJob, type_: DrainType, slurm: object) -> JobWrite | None:
    """Back into the queue where that is allowed; cancelled only where the manifest says Cancel."""
    can_requeue = isinstance(slurm, Snapshot) and (slurm.api_version or REQUEUES_SINCE) >= REQUEUES_SINCE
    if job.is_requeueable and can_requeue:
        return RequeueJob(job_id=job.job_id)
    return CancelJob(job_id=job.job_id) if type_ is DrainType.CANCEL else None


def _lane(holdup: Holdup, seen: Seen, now: datetime) -> Lane:
    """First its owner is told; a job whose owner cannot be told is not ended."""
    stages: list[list[Action]] = []
    comment = notices.with_notice(holdup.job.admin_comment, _notice(holdup, seen))
    if comment != holdup.job.admin_comment:
        told = UpdateJob(job_id=holdup.job.job_id, admin_comment=comment)
        message = f"told {_owner(holdup.job)} that it holds up {holdup.member.slurm_node}"
        stages.append([_write(seen, told, "OwnerTold", message)])
    if holdup.ends_at <= now and holdup.write is not None and _is_fresh(holdup.member, now):
        verb = "requeued" if isinstance(holdup.write, RequeueJob) else "cancelled"
        message = (
            f"{verb} {_owner(holdup.job)}: it held up {holdup.member.slurm_node} "
            f"({holdup.cause.kind}) for longer than drainPolicy.deadline"
        )
        stages.append([_write(seen, holdup.write, "DrainDeadline", message)])
    return lane(f"job {holdup.job.job_id}", *stages)


def _is_fresh(member: Member, now: datetime) -> bool:
    """As the gate wants it: after an older answer the job may run elsewhere by now."""
    slurm = member.slurm
    return (
        isinstance(slurm, Snapshot)
        and now - slurm.asked_at <= PROOF_LIFETIME
        and slurm.is_current(member.slurm_node)
    )


def _notice(holdup: Holdup, seen: Seen) -> str:
    fate = "requeued" if isinstance(holdup.write, RequeueJob) else "cancelled"
    return notices.notice(
        holdup.member.slurm_node,
        fate,
        holdup.ends_at,
        holdup.cause.kind,
        seen.nodeset.spec.drain_policy.message,
    )


def _withdrawn(seen: Seen, held: set[int]) -> list[Lane]:
    """A notice that no longer holds is taken back: its worker stays after all, or the policy changed."""
    lanes: list[Lane] = []
    for member in seen.members:
        for job in member.jobs:
            named = notices.named_in(job.admin_comment)
            if job.job_id in held or named != member.slurm_node:
                continue
            kept = UpdateJob(job_id=job.job_id, admin_comment=notices.with_notice(job.admin_comment, ""))
            message = f"told {_owner(job)} that it may stay on {member.slurm_node}"
            lanes.append(lane(f"job {job.job_id}", [_write(seen, kept, "OwnerTold", message)]))
    return lanes


def _owner(job: SlurmJob) -> str:
    return f"job {job.job_id} of {job.user or job.user_id}"


def _write(seen: Seen, write: JobWrite, reason: str, message: str) -> WriteSlurm:
    return WriteSlurm(controller=seen.controller_key, write=write, reason=reason, message=message)
