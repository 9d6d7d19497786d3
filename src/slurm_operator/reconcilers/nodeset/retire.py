"""The next safe steps towards removing one worker."""

from dataclasses import replace
from datetime import datetime, timedelta

from slurm_operator.api.meta import ObjectKey, key_of
from slurm_operator.plan.actions import Action, DeleteWorker, Fence, Wait, WriteSlurm
from slurm_operator.plan.gate import (
    Drained,
    Ended,
    NeverStarted,
    NotRunning,
    Proof,
    Shut,
    Unreported,
    gate,
    was_open,
)
from slurm_operator.reconcilers.nodeset.causes import LEAVING, Cause, Leaving
from slurm_operator.reconcilers.nodeset.marks import leaves
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.records import forget
from slurm_operator.reconcilers.nodeset.returns import noted_down
from slurm_operator.slurm.forgetting import may_forget
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
    member: Member, cause: Cause, controller: ObjectKey, now: datetime, *, has_twin: bool = False
) -> Stages:
    """Drain, wait, fence, delete: as far as the facts allow it now.

    While it `has_twin`, the record of their name stays, unless it is known to be this one's.
    """
    verdict = _verdict(member, now)
    match verdict:
        case Shut(reason="NotDraining") if is_marked_by_others(member):
            return [[told_to_drain(member, "it goes")]]
        case Shut(reason="NotDraining"):
            return [[drain(member, _firm(member, cause, now), controller)]]
        case _ if member.ends_within(GRACE_SECONDS):
            return [[_wait(member, "Terminating", "its pod is ending")]]
        case Shut(reason="Draining") if is_drained_for_something_else(member, cause):
            return [[drain(member, cause, controller)]]
        case Shut(reason=reason, message=message, jobs=jobs):
            return [[_wait(member, reason, message, jobs)]]
        case Unreported() if member.is_terminating:
            return [
                [_wait(member, "Terminating", "its pod is asked to end; what its kubelet did is awaited")]
            ]
        case Unreported():
            return [
                [*_barred(member, controller, has_twin=has_twin)],
                [delete(member, cause, verdict, controller, grace_seconds=None)],
            ]
        case Drained() if _lacks_note(member, cause):
            return [[drain(member, cause, controller)]]
        case Drained() if _takes_record_along(member, cause):
            return _fenced(member, cause, verdict, controller)
        case Drained() | NotRunning() if isinstance(member.slurm, Snapshot) and not member.slurm.is_settled:
            message = "a write of the operator before this one may yet lift its drain; Slurm is read again"
            return [[_wait(member, "OldAnswer", message)]]
        case NotRunning():
            return _crashed(member, cause, verdict, controller, has_twin=has_twin)
        case Ended() if _leaves_record_behind(member, cause, has_twin=has_twin):
            return [
                [forget(member.slurm_node, controller, "Retired")],
                [delete(member, cause, verdict, controller)],
            ]
        case Ended() if _leaves_record_unmarked(member, cause, has_twin=has_twin):
            return [[drain(member, cause, controller)], [delete(member, cause, verdict, controller)]]
        case Drained():
            return [[*leaves(member)], [delete(member, cause, verdict, controller)]]
        case Ended() | NeverStarted():
            return [[delete(member, cause, verdict, controller)]]


def _verdict(member: Member, now: datetime) -> Proof | Shut:
    """What the gate says; or said a moment ago, if Slurm was not read since.

    A proof that has run out is made again before anything goes by it, or nothing goes.
    """
    verdict = gate(member, now)
    is_old = isinstance(verdict, Shut) and verdict.reason == "OldAnswer"
    return (was_open(member, now) if is_old else None) or verdict


def _fenced(member: Member, cause: Cause, proof: Drained, controller: ObjectKey) -> Stages:
    """The record goes before the pod, by a proof of that moment."""
    fence = Fence(pod=key_of(member.pod), proof=proof)
    return [
        [*leaves(member, for_good=True)],
        [forget(member.slurm_node, controller, "Retired", fence=fence)],
        [delete(member, cause, proof, controller, is_fenced=True)],
    ]


def _crashed(
    member: Member, cause: Cause, proof: NotRunning, controller: ObjectKey, *, has_twin: bool
) -> Stages:
    """slurmd may be up again since a moment ago. While a drain stands it has no job, so the record goes last.

    Without one, a slurmd that runs after all drains itself, and a job has the whole grace period.
    """
    record = member.last_record
    if record is not None and record.state.is_drain:
        is_left = _leaves_record_behind(member, cause, has_twin=has_twin)
        forgotten = [forget(member.slurm_node, controller, "Retired")] if is_left else []
        return [[delete(member, cause, proof, controller)], [*forgotten]]
    if member.is_terminating:
        return [[_wait(member, "Terminating", "its pod is asked to end, and its slurmd is down")]]
    return [[delete(member, cause, proof, controller, grace_seconds=None)]]


def _barred(member: Member, controller: ObjectKey, *, has_twin: bool) -> list[WriteSlurm]:
    """A record that may be of its slurmd goes first, which slurmctld refuses while a job is there.

    It is asked for also where none is known: it may be there by now. The record of two of one name is kept.
    """
    slurm, record = member.slurm, member.namesake
    if not isinstance(slurm, Snapshot) or has_twin:
        return []
    if record is not None and (record.state.is_drain or not may_forget(member.slurm_node, slurm)):
        return []
    return [forget(member.slurm_node, controller, "Barred", "its slurmd may be about to register")]


def _lacks_note(member: Member, cause: Cause) -> bool:
    """slurmctld drained it for its resources. Our own reason tells who comes next that the record goes."""
    record = member.record
    return record is not None and cause.kind is Leaving.RESOURCES and record.is_drained_by_slurm


def _takes_record_along(member: Member, cause: Cause) -> bool:
    """Whether the record goes before the pod, as a fence: then slurmctld can start nothing there any more.

    With other resources it goes after the pod and before the next one; the drain says so. A worker that was
    already drained for something else has no such note, so its record goes now.
    """
    if member.record is None or not may_forget(member.slurm_node, member.slurm):
        return False
    noted = OurReason.read(member.record.reason)
    is_noted = noted is not None and noted.cause == Leaving.RESOURCES
    return _is_for_good(member, cause) or (cause.kind is Leaving.RESOURCES and not is_noted)


def _is_for_good(member: Member, cause: Cause) -> bool:
    """Nobody comes back under its name in Slurm."""
    return cause.kind in FOR_GOOD or member.is_renamed


def _leaves_record_behind(member: Member, cause: Cause, *, has_twin: bool) -> bool:
    """Nothing of it runs, and nobody is there, or comes, who could use its record."""
    no_use = _is_for_good(member, cause) or cause.kind is Leaving.RESOURCES
    return no_use and not has_twin and member.has_remains and may_forget(member.slurm_node, member.slurm)


def _leaves_record_unmarked(member: Member, cause: Cause, *, has_twin: bool) -> bool:
    """A job still names its record, so the record outlives the pod. Our drain tells later whose it was."""
    record = member.namesake
    is_left = _is_for_good(member, cause) and not has_twin and member.has_remains
    return is_left and record is not None and not record.state.is_drain and not record.reason


def drain(member: Member, cause: Cause, controller: ObjectKey) -> WriteSlurm:
    """Ask Slurm to start nothing new there. Slurm's own note about a node may be replaced, no human's."""
    return WriteSlurm(
        controller=controller,
        write=DrainNodes(
            nodes=(member.slurm_node,),
            reason=replace(cause, text=noted_down(member, cause.text)).reason(member),
            over=_replaceable(member),
            unless_in_use=cause.costs_nothing,
        ),
        reason=cause.kind,
        message=f"draining {member.slurm_node}: {cause.text}",
    )


def _firm(member: Member, cause: Cause, now: datetime) -> Cause:
    """One that crashed seems to take jobs until Slurm finds out. If it is not back soon, it is not spared."""
    is_lost = member.has_crashed and member.ready_again_in(now) <= timedelta(0)
    return replace(cause, costs_nothing=False) if is_lost else cause


def _replaceable(member: Member) -> frozenset[str]:
    """Slurm's own note and, word for word, a drain of ours that was seen: whoever drains anew means that.

    Not where people drained: into a drain without a reason slurmctld writes one, too.
    """
    found = member.namesake
    if found is None or found.is_drained_by_people:
        return frozenset()
    is_slurms = member.last_record is not None and found.is_marked_by_slurm
    return frozenset({found.reason}) if found.is_drained_by_us or is_slurms else frozenset()


def is_drained_for_something_else(member: Member, cause: Cause) -> bool:
    """Our own drain says that it stays, and it leaves, or the other way round.

    The clock of the drain policy counts from a drain that sends a worker away, and from no other. So such a
    reason is replaced, while jobs are left that it matters to; a human's never is.
    """
    ours = member.drain
    if ours is None:
        return False
    says_it_leaves = ours.cause in LEAVING and member.is_drained_itself
    return says_it_leaves != isinstance(cause.kind, Leaving)


def is_marked_by_others(member: Member) -> bool:
    """A human left a reason on a node that does not drain, as `state=down reason=...` does."""
    record = member.last_record
    if record is None or record.state.is_drain or not record.reason:
        return False
    return not is_our_reason(record.reason) and not record.is_marked_by_slurm


def told_to_drain(member: Member, then: str) -> Wait:
    """What they can do about it, and what comes of it."""
    record = member.last_record
    assert record is not None
    return _wait(
        member,
        "MarkedByOthers",
        f"{record.reason_set_by or 'somebody'} marked it {record.state} with the reason {record.reason!r}, "
        f"which is not ours to replace. Drain it in Slurm, or clear the reason, and {then}",
    )


def _wait(member: Member, reason: str, message: str, jobs: tuple[int, ...] = ()) -> Wait:
    return Wait(subject=member.slurm_node, reason=reason, message=message, jobs=jobs)


def delete(
    member: Member,
    cause: Cause,
    proof: Proof,
    controller: ObjectKey,
    *,
    is_fenced: bool = False,
    grace_seconds: int | None = GRACE_SECONDS,
) -> DeleteWorker:
    return DeleteWorker(
        controller=controller,
        key=key_of(member.pod),
        slurm_node=member.slurm_node,
        proof=proof,
        grace_seconds=grace_seconds,
        reason=cause.kind,
        message=f"deleted worker {member.name}: {cause.text}; {_because(proof)}",
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
        case Ended():
            return "it had ended"
