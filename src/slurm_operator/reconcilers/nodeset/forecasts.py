"""Workers that should take no more jobs: why, which jobs hold each of them up, and when it is free."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from slurm_operator.api.workers import DrainType
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.plan import Plan
from slurm_operator.reconcilers.nodeset.causes import Cause
from slurm_operator.reconcilers.nodeset.choices import choose
from slurm_operator.reconcilers.nodeset.members import FOREVER, Member
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.policy import overdue_at
from slurm_operator.reconcilers.nodeset.rollout import replaced
from slurm_operator.slurm.snapshot import Unreachable

TOLD = 32
NOW_ALREADY = datetime.min.replace(tzinfo=UTC)


def forecasts(seen: Seen, plan: Plan) -> Manifest:
    """What the status says of them. While Slurm is silent, as last known of those that are still there."""
    if isinstance(seen.slurm, Unreachable):
        return _last_known(seen)
    causes = _causes(seen, plan)
    going = [m for m in seen.members if m.drain is not None or m.uid in causes]
    going.sort(key=lambda member: (_free_at(member), member.slurm_node))
    last = max(map(_free_at, going), default=NOW_ALREADY)
    return {
        "drains": [_drain_of(member, seen, causes.get(member.uid)) for member in going[:TOLD]],
        "draining": len(going),
        "drainedBy": last if NOW_ALREADY < last < FOREVER else None,
    }


def _causes(seen: Seen, plan: Plan) -> Mapping[str, Cause]:
    """Why workers leave, by uid, that the plan waits for and that no drain of ours tells of.

    As a rule there are none. Of two that share a name, as twins do, Slurm knows one at most.
    """
    told = {member.slurm_node for member in seen.members if member.drain is not None}
    waiting = {wait.subject for wait in plan.waits} - told
    others = {member.slurm_node: member.uid for member in seen.members if member.slurm_node in waiting}
    if not others:
        return {}
    choices = choose(seen, seen.now)
    leaving = {**choices.leaving, **replaced(seen, choices, seen.revision, seen.now)}
    return {uid: leaving[uid] for uid in others.values() if uid in leaving}


def _free_at(member: Member) -> datetime:
    """When its last job ends at the latest. Nobody can tell of one that ran and is unknown to Slurm."""
    slurmd = member.slurmd
    if member.last_record is None and slurmd is not None and slurmd.has_ever_started:
        return FOREVER
    return member.deadline or NOW_ALREADY


def _drain_of(member: Member, seen: Seen, cause: Cause | None) -> Manifest:
    record, ours, policy = member.record, member.drain, seen.nodeset.spec.drain_policy
    is_drained, free_at = record is not None and record.state.is_drain, _free_at(member)
    return {
        "slurmNode": member.slurm_node,
        "pod": member.name,
        "reason": ours.cause if ours is not None else cause.kind if cause is not None else "",
        "since": record.reason_changed_at if record is not None and is_drained else None,
        "deadline": overdue_at(member, policy) if policy.type is not DrainType.WAIT else None,
        "forecast": free_at if NOW_ALREADY < free_at < FOREVER else None,
        "jobs": [str(job.job_id) for job in member.jobs],
        "message": "; ".join(_words(member, cause)),
    }


def _words(member: Member, cause: Cause | None) -> Iterator[str]:
    """Ours, as they stand in Slurm; of one that others drained, theirs too."""
    record, ours = member.record, member.drain
    if ours is not None:
        yield ours.text
        return
    if cause is not None:
        yield cause.text
    if record is not None and record.is_drained_by_others:
        by, why = record.reason_set_by or "somebody", record.reason or "no reason given"
        yield f"drained in Slurm by {by}: {why}"


def _last_known(seen: Seen) -> Manifest:
    told, there = seen.nodeset.status, {member.name for member in seen.members}
    drains = [drain for drain in told.drains if drain.pod in there]
    draining = min(max(0, told.draining - (len(told.drains) - len(drains))), len(there))
    return {
        "drains": drains,
        "draining": draining,
        "drainedBy": told.drained_by if draining else None,
    }
