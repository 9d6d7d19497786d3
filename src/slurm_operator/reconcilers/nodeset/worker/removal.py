"""The next safe steps towards removing one worker."""

from dataclasses import replace
from datetime import datetime, timedelta

from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.shared.worker_parts import Records
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Action, DeleteWorker, Fence, Wait, WriteSlurm
from slurm_operator.reconcilers.nodeset.annotations import leaves, without_others_cordon
from slurm_operator.reconcilers.nodeset.records.outdated import forget
from slurm_operator.reconcilers.nodeset.worker.drain_causes import LEAVING, Cause, Leaving
from slurm_operator.reconcilers.nodeset.worker.rejoin import drain_text
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import (
    Drained,
    Ended,
    Forgotten,
    NeverStarted,
    NotRunning,
    Proof,
    Shut,
    ShutFor,
    Unreported,
    gate,
    jobs_text,
    was_open,
)
from slurm_operator.safety.record_removal import may_delete_record
from slurm_operator.slurm.reasons import OurReason, is_our_reason
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import DrainNodes

# With a proof in hand nothing is left to wait for in the pod.
GRACE_SECONDS = 30

# A worker that comes back under the same name keeps its record in Slurm; these do not come back.
FOR_GOOD = {
    Leaving.SCALE_IN,
    Leaving.DELETION,
    Leaving.MODE_SWITCH,
    Leaving.NODE_UNFIT,
    Leaving.HOSTNAME,
    Leaving.RETIRED,
}

Stages = list[list[Action]]


def retire(
    worker: Worker, cause: Cause, controller: ObjectKey, now: datetime, *, has_twin: bool = False
) -> Stages:
    """Drain, wait, fence, delete: as far as the facts allow it now.

    While it `has_twin`, the record of their name stays, unless it is known to be this one's.
    """
    if worker.has_others_cordon and not worker.is_terminating:
        return [[*without_others_cordon(worker)]]
    verdict = _verdict(worker, now)
    if isinstance(verdict, NeverStarted | Unreported) and worker.has_created_record:
        return _not_yet_up(worker, cause, verdict, controller)
    match verdict:
        case Shut(reason=ShutFor.NOT_DRAINING) if is_marked_by_others(worker):
            return [[told_to_drain(worker, "it is removed")]]
        case Shut(reason=ShutFor.NOT_DRAINING):
            return [[drain(worker, _do_not_spare_if_lost(worker, cause, now), controller)]]
        case _ if worker.ends_within(GRACE_SECONDS):
            return [[_wait(worker, Reason.TERMINATING, "its pod is ending")]]
        case Shut(reason=ShutFor.DRAINING) if is_drained_for_something_else(worker, cause):
            return [[drain(worker, cause, controller)]]
        case Shut(reason=reason, message=message, jobs=jobs):
            return [[_wait(worker, Reason(reason), message, jobs)]]
        case Unreported() if worker.is_terminating:
            return [[_ending(worker, "; what its kubelet did is awaited")]]
        case Unreported():
            return [
                [*_barred(worker, controller, has_twin=has_twin)],
                [delete(worker, cause, verdict, controller, grace_seconds=None)],
            ]
        case Drained() if _lacks_note(worker, cause):
            return [[drain(worker, cause, controller)]]
        case Drained() if _takes_record_along(worker, cause):
            return _fenced(worker, cause, verdict, controller)
        case Drained() | NotRunning() if isinstance(worker.slurm, Snapshot) and not worker.slurm.is_settled:
            message = "a write of the operator before this one may yet lift its drain; Slurm is read again"
            return [[_wait(worker, Reason.OLD_ANSWER, message)]]
        case Forgotten() if worker.is_terminating:
            return [[_ending(worker, ", and Slurm does not know it")]]
        case Forgotten():
            return [[delete(worker, cause, verdict, controller, grace_seconds=None)]]
        case NotRunning():
            return _crashed(worker, cause, verdict, controller, has_twin=has_twin)
        case Ended() if _leaves_record_behind(worker, cause, has_twin=has_twin):
            return [
                [forget(worker.slurm_node, controller, Reason.RETIRED)],
                [delete(worker, cause, verdict, controller)],
            ]
        case Ended() if _leaves_record_unmarked(worker, cause, has_twin=has_twin):
            return [[drain(worker, cause, controller)], [delete(worker, cause, verdict, controller)]]
        case Drained():
            return [[*leaves(worker)], [delete(worker, cause, verdict, controller)]]
        case Ended() | NeverStarted():
            return [[delete(worker, cause, verdict, controller)]]


def _not_yet_up(
    worker: Worker, cause: Cause, proof: NeverStarted | Unreported, controller: ObjectKey
) -> Stages:
    """Slurm knows it already, so a job may wait for it to start: that one is waited for, too.

    A record that goes for good goes before the pod, and slurmctld refuses that while a job is there.
    """
    record = worker.namesake
    if worker.jobs and record is not None and not record.state.is_drain:
        return [[drain(worker, cause, controller)]]
    if worker.jobs:
        jobs = tuple(job.job_id for job in worker.jobs)
        return [[_wait(worker, Reason.DRAINING, f"{jobs_text(worker.jobs)} waits for it to start", jobs)]]
    if worker.is_terminating and isinstance(proof, Unreported):
        return [[_ending(worker, "; what its kubelet did is awaited")]]
    goes = _is_for_good(worker, cause) and may_delete_record(worker.slurm_node, worker.slurm)
    gone = [forget(worker.slurm_node, controller, Reason.RETIRED)] if goes else []
    grace = GRACE_SECONDS if isinstance(proof, NeverStarted) else None
    return [[*gone], [delete(worker, cause, proof, controller, grace_seconds=grace)]]


def _verdict(worker: Worker, now: datetime) -> Proof | Shut:
    """What the gate says; or said a moment ago, if Slurm was not read since.

    A proof that has run out is made again before anything relies on it, or nothing is removed.
    """
    verdict = gate(worker, now)
    is_old = isinstance(verdict, Shut) and verdict.reason is ShutFor.OLD_ANSWER
    return (was_open(worker, now) if is_old else None) or verdict


def _fenced(worker: Worker, cause: Cause, proof: Drained, controller: ObjectKey) -> Stages:
    """The record goes before the pod, by a proof of that moment."""
    fence = Fence(pod=key_of(worker.pod), proof=proof)
    return [
        [*leaves(worker, for_good=True)],
        [forget(worker.slurm_node, controller, Reason.RETIRED, fence=fence)],
        [delete(worker, cause, proof, controller, is_fenced=True)],
    ]


def _crashed(
    worker: Worker, cause: Cause, proof: NotRunning, controller: ObjectKey, *, has_twin: bool
) -> Stages:
    """slurmd may be up again since a moment ago. While a drain stands it has no job, so the record goes last.

    Without one, a slurmd that runs after all drains itself, and a job has the whole grace period.
    """
    record = worker.last_record
    if record is not None and record.state.is_drain:
        is_left = _leaves_record_behind(worker, cause, has_twin=has_twin)
        forgotten = [forget(worker.slurm_node, controller, Reason.RETIRED)] if is_left else []
        return [[delete(worker, cause, proof, controller)], [*forgotten]]
    if worker.is_terminating:
        return [[_ending(worker, ", and its slurmd is down")]]
    return [[delete(worker, cause, proof, controller, grace_seconds=None)]]


def _barred(worker: Worker, controller: ObjectKey, *, has_twin: bool) -> list[WriteSlurm]:
    """A record that may be of its slurmd goes first, which slurmctld refuses while a job is there.

    It is asked for also where none is known: it may be there by now. The record of two of one name is kept.
    """
    slurm, record = worker.slurm, worker.namesake
    if not isinstance(slurm, Snapshot) or has_twin:
        return []
    if record is not None and (record.state.is_drain or not may_delete_record(worker.slurm_node, slurm)):
        return []
    return [forget(worker.slurm_node, controller, Reason.BARRED, "its slurmd may be about to register")]


def _lacks_note(worker: Worker, cause: Cause) -> bool:
    """slurmctld drained it for its resources. Our own reason tells who comes next that the record goes."""
    record = worker.record
    return record is not None and cause.kind is Leaving.RESOURCES and record.is_drained_by_slurm


def _takes_record_along(worker: Worker, cause: Cause) -> bool:
    """Whether the record goes before the pod, as a fence: then slurmctld can start nothing there any more.

    With other resources it goes after the pod and before the next one; the drain says so. A worker that was
    already drained for something else has no such note, so its record goes now.
    """
    if worker.record is None or not may_delete_record(worker.slurm_node, worker.slurm):
        return False
    noted = OurReason.read(worker.record.reason)
    is_noted = noted is not None and noted.cause == Leaving.RESOURCES
    return _is_for_good(worker, cause) or (cause.kind is Leaving.RESOURCES and not is_noted)


def _is_for_good(worker: Worker, cause: Cause) -> bool:
    """Nobody comes back under its name in Slurm."""
    return worker.is_renamed or (cause.kind in FOR_GOOD and not _is_switched_off(worker, cause))


def _is_switched_off(worker: Worker, cause: Cause) -> bool:
    """Its record is made by us and stays: `ordinals` do not name it now, and may do so again."""
    spec = worker.nodeset.spec
    is_known = spec.records is Records.CREATED and spec.ordinals is not None
    return is_known and cause.kind is Leaving.SCALE_IN and (worker.ordinal or 0) < spec.replicas


def _leaves_record_behind(worker: Worker, cause: Cause, *, has_twin: bool) -> bool:
    """Nothing of it runs, and nobody is there, or comes, who could use its record."""
    no_use = _is_for_good(worker, cause) or cause.kind is Leaving.RESOURCES
    return (
        no_use and not has_twin and worker.has_remains and may_delete_record(worker.slurm_node, worker.slurm)
    )


def _leaves_record_unmarked(worker: Worker, cause: Cause, *, has_twin: bool) -> bool:
    """A job still names its record, so the record outlives the pod. Our drain tells later whose it was."""
    record = worker.namesake
    is_left = _is_for_good(worker, cause) and not has_twin and worker.has_remains
    return is_left and record is not None and not record.state.is_drain and not record.reason


def drain(worker: Worker, cause: Cause, controller: ObjectKey) -> WriteSlurm:
    """Ask Slurm to start nothing new there. Slurm's own note about a node may be replaced, no human's."""
    return WriteSlurm(
        controller=controller,
        write=DrainNodes(
            nodes=(worker.slurm_node,),
            reason=replace(cause, text=drain_text(worker, cause.text)).reason(worker),
            over=_replaceable(worker),
            unless_in_use=cause.costs_nothing,
        ),
        reason=Reason(cause.kind),
        message=f"draining {worker.slurm_node}: {cause.text}",
    )


def _do_not_spare_if_lost(worker: Worker, cause: Cause, now: datetime) -> Cause:
    """One that crashed seems to take jobs until Slurm finds out. If it is not back soon, it is not spared."""
    is_lost = worker.has_crashed and worker.ready_again_in(now) <= timedelta(0)
    return replace(cause, costs_nothing=False) if is_lost else cause


def _replaceable(worker: Worker) -> frozenset[str]:
    """Slurm's own note and, word for word, a drain of ours that was seen: whoever drains again means that.

    Not where people drained: into a drain without a reason slurmctld writes one, too.
    """
    found = worker.namesake
    if found is None or found.is_drained_by_people:
        return frozenset()
    is_slurms = worker.last_record is not None and found.is_marked_by_slurm
    return frozenset({found.reason}) if found.is_drained_by_us or is_slurms else frozenset()


def is_drained_for_something_else(worker: Worker, cause: Cause) -> bool:
    """Our own drain says that it stays, and it leaves, or the other way round.

    The clock of the drain policy counts from a drain that sends a worker away, and from no other. So such a
    reason is replaced, while jobs are left that it matters to; a human's never is.
    """
    ours = worker.drain
    if ours is None:
        return False
    says_it_leaves = ours.cause in LEAVING and worker.is_drained_itself
    return says_it_leaves != isinstance(cause.kind, Leaving)


def is_marked_by_others(worker: Worker) -> bool:
    """A human left a reason on a node that does not drain, as `state=down reason=...` does."""
    record = worker.last_record
    if record is None or record.state.is_drain or not record.reason:
        return False
    return not is_our_reason(record.reason) and not record.is_marked_by_slurm


def told_to_drain(worker: Worker, then: str) -> Wait:
    """What they can do about it, and what comes of it."""
    record = worker.last_record
    assert record is not None
    return _wait(
        worker,
        Reason.MARKED_BY_OTHERS,
        f"{record.reason_set_by or 'somebody'} marked it {record.state} with the reason {record.reason!r}, "
        f"which is not ours to replace. Drain it in Slurm, or clear the reason, and {then}",
    )


def _ending(worker: Worker, more: str) -> Wait:
    return _wait(worker, Reason.TERMINATING, f"its pod is asked to end{more}")


def _wait(worker: Worker, reason: Reason, message: str, jobs: tuple[int, ...] = ()) -> Wait:
    return Wait(subject=worker.slurm_node, reason=reason, message=message, jobs=jobs)


def delete(
    worker: Worker,
    cause: Cause,
    proof: Proof,
    controller: ObjectKey,
    *,
    is_fenced: bool = False,
    grace_seconds: int | None = GRACE_SECONDS,
) -> DeleteWorker:
    return DeleteWorker(
        controller=controller,
        key=key_of(worker.pod),
        slurm_node=worker.slurm_node,
        proof=proof,
        grace_seconds=grace_seconds,
        reason=Reason(cause.kind),
        message=f"deleted worker {worker.name}: {cause.text}; {_because(proof)}",
        is_fenced=is_fenced,
    )


def _because(proof: Proof) -> str:
    match proof:
        case Drained():
            return "no unfinished job was left on it"
        case NeverStarted():
            return "its slurmd had never started"
        case Unreported():
            return "nobody had heard of its slurmd; if it runs after all, it waits for its jobs"
        case NotRunning():
            return "its slurmd had crashed, and no job was on it"
        case Forgotten():
            return "Slurm did not know it, and no step ran in it"
        case Ended():
            return "it had ended"
