"""Keeping an object while others need it: a finalizer that comes with the first and goes with the last.

It stands only while it protects something: what nobody needs can be deleted even when no operator runs. An
object with things of ours that nothing else would delete has it for as long as it is there.
"""

from collections.abc import Sequence

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.shared.names import FORCE_DELETION
from slurm_operator.api.shared.names import IN_USE_FINALIZER as FINALIZER
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.plan.actions import Action, PatchObject, Wait
from slurm_operator.plan.order import is_forced

# How Kubernetes notes that an object waits for its children to be gone.
_FOREGROUND = "foregroundDeletion"


def holding(
    kind: Kind, meta: Meta, dependents: Sequence[str], *, cost: str = "", leaves_something: bool = False
) -> list[Action]:
    """The step that is due: hold the object, release it, or say what holds up its deletion.

    `cost` says what becomes of the others if a person has it deleted all the same. What `leaves_something`
    behind is released only when it is being deleted: then that goes first.
    """
    held = FINALIZER in meta.finalizers
    needed = bool(dependents) and not is_forced(meta)
    wanted = needed or (leaves_something and not meta.is_terminating)
    if held and not wanted:
        why = "forced by annotation" if dependents else "nothing needs it any more"
        kept = [finalizer for finalizer in meta.finalizers if finalizer != FINALIZER]
        return [_patch(kind, meta, kept, Reason.RELEASED, f"{kind.kind} {meta.name} may be deleted: {why}")]
    if wanted and not held and not meta.is_terminating:
        message = f"{kind.kind} {meta.name} is kept {_why(dependents if needed else ())}"
        held_on = _patch(kind, meta, [*meta.finalizers, FINALIZER], Reason.HELD, message)
        return [wire.replace(held_on, is_housekeeping=True)]  # News only when somebody deletes it.
    if held and meta.is_terminating:
        waiting = Wait(
            subject=f"{kind.kind} {meta.name}", reason=Reason.IN_USE, message=_in_use(kind, dependents, cost)
        )
        return [*_children_stay(kind, meta), waiting]
    return []


def _children_stay(kind: Kind, meta: Meta) -> list[Action]:
    """A deletion in the foreground takes the children first, again and again while we put them back."""
    if _FOREGROUND not in meta.finalizers:
        return []
    kept = [finalizer for finalizer in meta.finalizers if finalizer != _FOREGROUND]
    message = f"{kind.kind} {meta.name} is deleted before its children, not after them: they are still needed"
    return [_patch(kind, meta, kept, Reason.NOT_IN_FOREGROUND, message)]


def _why(dependents: Sequence[str]) -> str:
    if not dependents:
        return "until the copies of its keys are deleted with it"
    return f"while these need it: {first_few(dependents)}"


def _in_use(kind: Kind, dependents: Sequence[str], cost: str) -> str:
    return (
        f"This {kind.kind} is to be deleted, but still needed by {first_few(dependents)}. It goes on working "
        f"until they are gone. To delete it all the same, annotate it with {FORCE_DELETION}=true"
        + (f": {cost}." if cost else ".")
    )


def _patch(kind: Kind, meta: Meta, finalizers: list[str], reason: Reason, message: str) -> PatchObject:
    return PatchObject(
        kind=kind,
        key=ObjectKey(meta.namespace, meta.name),
        uid=meta.uid,
        operations=(
            # The whole list is written, so it must still be the one that we have seen.
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
        ),
        reason=reason,
        message=message,
    )
