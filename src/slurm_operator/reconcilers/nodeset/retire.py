"""The next safe steps towards removing one worker."""

from datetime import datetime

from slurm_operator.api import names
from slurm_operator.api.meta import ObjectKey, key_of
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Action, DeleteWorker, PatchObject, Wait, WriteSlurm
from slurm_operator.plan.gate import Drained, Ended, NeverStarted, NotRunning, Proof, Shut, gate
from slurm_operator.reconcilers.nodeset.causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.slurm.reasons import is_slurms_own_reason
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import DeleteNodes, DrainNodes

# With a proof in hand nothing is left to wait for in the pod.
GRACE_SECONDS = 30

# A worker that comes back under the same name keeps its record in Slurm; these do not come back.
FOR_GOOD = {Leaving.SCALE_IN, Leaving.DELETION, Leaving.MODE_SWITCH, Leaving.NODE_UNFIT, Leaving.HOSTNAME}

Stages = list[list[Action]]


def retire(member: Member, cause: Cause, controller: ObjectKey, now: datetime) -> Stages:
    """Drain, wait, fence, delete: as far as the facts allow it now."""
    match gate(member, now):
        case Shut(reason="NotDraining"):
            return [[drain(member, cause, controller)]]
        case Shut(reason=reason, message=message):
            return [[Wait(subject=member.slurm_node, reason=reason, message=message)]]
        case Drained() as proof if cause.kind in FOR_GOOD and may_delete_record(member):
            return [
                [release(member, retired=True)],
                [forget(member, controller)],
                [delete(member, cause, proof, controller)],
            ]
        case Drained() | Ended() | NeverStarted() | NotRunning() as proof:
            return [[release(member)], [delete(member, cause, proof, controller)]]


def drain(member: Member, cause: Cause, controller: ObjectKey) -> WriteSlurm:
    """Ask Slurm to start nothing new there. Slurm's own note about a node may be replaced, no human's."""
    own = member.record.reason if member.record is not None else ""
    over = frozenset({own}) if own and is_slurms_own_reason(own) else frozenset[str]()
    return WriteSlurm(
        controller=controller,
        write=DrainNodes(nodes=(member.slurm_node,), reason=cause.reason(member), over=over),
        reason=cause.kind,
        message=f"draining {member.slurm_node}: {cause.text}",
    )


def release(member: Member, *, retired: bool = False) -> PatchObject:
    """With a proof the worker needs no protection any more: evictions and deletes may pass."""
    labels = {k: v for k, v in member.pod.metadata.labels.items() if k != names.LABEL_POD_PROTECT}
    annotations = dict(member.pod.metadata.annotations)
    if retired:
        annotations[names.POD_RETIRED] = member.uid
    return patch_metadata(member, labels, annotations, "Released", f"{member.slurm_node} is free of jobs")


def patch_metadata(
    member: Member, labels: dict[str, str], annotations: dict[str, str], reason: str, message: str
) -> PatchObject:
    return PatchObject(
        kind=kinds.POD,
        key=key_of(member.pod),
        uid=member.uid,
        operations=(
            {"op": "add", "path": "/metadata/labels", "value": labels},
            {"op": "add", "path": "/metadata/annotations", "value": annotations},
        ),
        reason=reason,
        message=message,
    )


def forget(member: Member, controller: ObjectKey) -> WriteSlurm:
    """The fence: slurmctld refuses while a job is there, and afterwards can start none."""
    return WriteSlurm(
        controller=controller,
        write=DeleteNodes(nodes=(member.slurm_node,)),
        reason="Retired",
        message=f"removing {member.slurm_node} from Slurm",
    )


def delete(member: Member, cause: Cause, proof: Proof, controller: ObjectKey) -> DeleteWorker:
    return DeleteWorker(
        controller=controller,
        key=key_of(member.pod),
        slurm_node=member.slurm_node,
        proof=proof,
        grace_seconds=GRACE_SECONDS,
        reason=cause.kind,
        message=f"deleted worker {member.name}: {cause.text}; {_because(proof)}",
    )


def _because(proof: Proof) -> str:
    match proof:
        case Drained():
            return "no unfinished job was left on it"
        case NeverStarted():
            return "its slurmd had never started"
        case NotRunning():
            return "its slurmd had crashed, and no job was on it"
        case Ended():
            return "it had ended"


def may_delete_record(member: Member) -> bool:
    """Never a record that a job, also a pending one, or a reservation names, or that a human drained."""
    if not isinstance(member.slurm, Snapshot) or member.record is None:
        return False
    named = member.slurm.jobs_naming(member.slurm_node) or member.slurm.reservations_naming(member.slurm_node)
    return not named and not member.record.is_drained_by_others and member.record.state.is_dynamic
