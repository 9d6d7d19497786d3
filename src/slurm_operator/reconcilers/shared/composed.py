"""What a composed object is made of: the kinds of its parts, how each of them is, and how one leaves."""

from dataclasses import dataclass

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.conditions import DEGRADED, PROGRESSING, READY, Condition, Truth
from slurm_operator.api.shared.meta import HasMeta, key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Action, DeleteObject, Wait

Part = Controller | Accounting | RestApi | NodeSet | LoginSet

# The order in which one part can be the cause of another one's trouble.
PART_TYPES: tuple[type[Part], ...] = (Accounting, Controller, RestApi, NodeSet, LoginSet)

# Workers go first, while everything is there that they need to go in peace; what keeps the records goes last.
FAREWELL = ("NodeSet", "LoginSet", "RestApi", "Controller", "Accounting")

# On an object whose dependents are to stay, by `kubectl delete --cascade=orphan`.
ORPHAN = "orphan"


@dataclass(frozen=True)
class State:
    """How one part is, by its own conditions."""

    name: str
    is_ready: bool = False
    is_progressing: bool = True
    is_degraded: bool = False
    reason: str = Reason.STARTING
    message: str = "it has not been looked at yet."
    ready: str = ""  # What it says about being ready itself, whatever else is the matter with it.
    ready_message: str = ""
    progress: str = ""  # Why it is on its way, and what it waits for: a reason and a sentence.
    progress_message: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.message else self.name


def state(part: Part) -> State:
    """What a part says about itself, its trouble before all else."""
    told = {condition.type: condition for condition in part.status.conditions}
    ready, degraded, progressing = told.get(READY), told.get(DEGRADED), told.get(PROGRESSING)
    if ready is None:
        return State(part_name(part))
    is_old = part.status.observed_generation < part.metadata.generation
    is_degraded = _holds(degraded)
    telling = degraded if is_degraded and degraded is not None else ready
    return State(
        name=part_name(part),
        is_ready=_holds(ready),
        is_progressing=is_old or _holds(progressing),
        is_degraded=is_degraded,
        reason=telling.reason,
        message=telling.message,
        ready=ready.reason,
        ready_message=ready.message,
        progress=progressing.reason if progressing is not None and _holds(progressing) else "",
        progress_message=progressing.message if progressing is not None and _holds(progressing) else "",
    )


def _holds(condition: Condition | None) -> bool:
    return condition is not None and condition.status is Truth.TRUE


def under_way(one: State) -> tuple[str, str]:
    """A reason and a sentence: what a part waits for. That it is ready is no reason for being on its way."""
    if one.progress:
        return one.progress, f"{one.name}: {one.progress_message}" if one.progress_message else one.name
    if one.is_ready:
        return Reason.CHANGING, f"{one.name} has not been looked at since it was changed."
    return one.reason, str(one)


def said_by(part: Part) -> str:
    """What a part says about the change that it is in the middle of."""
    told = {condition.type: condition for condition in part.status.conditions}
    return next((told[type_].message for type_ in (PROGRESSING, READY) if type_ in told), "")


def part_name(part: Part) -> str:
    return f"{part.KIND.kind} {part.metadata.name}"


def next_removal_step(part: Part, owner: Kind) -> Action:
    """The next step towards an object's end. How long that takes is for the object itself to say."""
    name = part_name(part)
    if part.metadata.is_terminating:
        why = said_by(part) or "its own cleaning up is not over."
        return Wait(subject=name, reason=Reason.LEAVING, message=f"waiting for {name} to be gone: {why}")
    return deletion(part.KIND, part, owner)


def deletion(kind: Kind, thing: HasMeta, owner: Kind) -> DeleteObject:
    return DeleteObject(
        kind=kind,
        key=key_of(thing),
        uid=thing.metadata.uid,
        reason=Reason.DELETED,
        message=f"deleted {kind.kind} {thing.metadata.name}: the {owner.kind} no longer has it",
    )
