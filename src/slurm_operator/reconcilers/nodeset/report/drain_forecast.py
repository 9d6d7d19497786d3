"""Workers that should take no more jobs: why, which jobs hold each of them up, and when it is free."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from slurm_operator.api.shared.worker_parts import DrainType
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.plan import Plan
from slurm_operator.reconcilers.nodeset.departures.rules import departures
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause
from slurm_operator.reconcilers.nodeset.worker.drain_policy import overdue_at
from slurm_operator.reconcilers.nodeset.workers import FOREVER, Worker
from slurm_operator.slurm.snapshot import Unreachable

TOLD = 32
NOW_ALREADY = datetime.min.replace(tzinfo=UTC)


def forecasts(seen: Seen, plan: Plan) -> Manifest:
    """What the status says of them. While Slurm is silent, as last known of those that are still there."""
    if isinstance(seen.slurm, Unreachable):
        return _last_known(seen)
    causes = _causes(seen, plan)
    going = [m for m in seen.workers if m.drain is not None or m.uid in causes]
    going.sort(key=lambda worker: (_free_at(worker), worker.slurm_node))
    last = max(map(_free_at, going), default=NOW_ALREADY)
    return {
        "drains": [_drain_of(worker, seen, causes.get(worker.uid)) for worker in going[:TOLD]],
        "draining": len(going),
        "drainedBy": last if NOW_ALREADY < last < FOREVER else None,
    }


def _causes(seen: Seen, plan: Plan) -> Mapping[str, Cause]:
    """Why workers leave, by uid, that the plan waits for and that no drain of ours tells of.

    As a rule there are none. Of two that share a name, as twins do, Slurm knows one at most.
    """
    told = {worker.slurm_node for worker in seen.workers if worker.drain is not None}
    waiting = {wait.subject for wait in plan.waits} - told
    others = {worker.slurm_node: worker.uid for worker in seen.workers if worker.slurm_node in waiting}
    if not others:
        return {}
    leaving = departures(seen, seen.now).leaving
    return {uid: leaving[uid] for uid in others.values() if uid in leaving}


def _free_at(worker: Worker) -> datetime:
    """When its last job ends at the latest. Nobody can tell of one that ran and is unknown to Slurm."""
    slurmd = worker.slurmd
    if worker.last_record is None and slurmd is not None and slurmd.has_ever_started:
        return FOREVER
    return worker.deadline or NOW_ALREADY


def _drain_of(worker: Worker, seen: Seen, cause: Cause | None) -> Manifest:
    record, ours, policy = worker.record, worker.drain, seen.nodeset.spec.drain_policy
    is_drained, free_at = record is not None and record.state.is_drain, _free_at(worker)
    return {
        "slurmNode": worker.slurm_node,
        "pod": worker.name,
        "reason": ours.cause if ours is not None else cause.kind if cause is not None else "",
        "since": record.reason_changed_at if record is not None and is_drained else None,
        "deadline": overdue_at(worker, policy) if policy.type is not DrainType.WAIT else None,
        "forecast": free_at if NOW_ALREADY < free_at < FOREVER else None,
        "jobs": [str(job.job_id) for job in worker.jobs],
        "message": "; ".join(_words(worker, cause)),
    }


def _words(worker: Worker, cause: Cause | None) -> Iterator[str]:
    """Ours, as they stand in Slurm; of one that others drained, theirs too."""
    record, ours = worker.record, worker.drain
    if ours is not None:
        yield ours.text
        return
    if cause is not None:
        yield cause.text
    if record is not None and record.is_drained_by_others:
        by, why = record.reason_by
        yield f"drained in Slurm by {by or 'somebody'}: {why or 'no reason given'}"


def _last_known(seen: Seen) -> Manifest:
    told, there = seen.nodeset.status, {worker.name for worker in seen.workers}
    drains = [drain for drain in told.drains if drain.pod in there]
    draining = min(max(0, told.draining - (len(told.drains) - len(drains))), len(there))
    return {
        "drains": drains,
        "draining": draining,
        "drainedBy": told.drained_by if draining else None,
    }
