"""Conditions in the making: short ways to state one, and when its status last changed."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from slurm_operator import wire
from slurm_operator.api.shared.conditions import DEGRADED as DEGRADED
from slurm_operator.api.shared.conditions import MOST_CHARACTERS, Truth
from slurm_operator.api.shared.conditions import PROGRESSING as PROGRESSING
from slurm_operator.api.shared.conditions import READY as READY
from slurm_operator.api.shared.conditions import Condition as Condition
from slurm_operator.conditions import Reason
from slurm_operator.printable import cut, printable


def true(type_: str, reason: Reason, message: str = "") -> Condition:
    return Condition(type=type_, status=Truth.TRUE, reason=reason, message=message)


def false(type_: str, reason: Reason, message: str = "") -> Condition:
    return Condition(type=type_, status=Truth.FALSE, reason=reason, message=message)


def unknown(type_: str, reason: Reason, message: str = "") -> Condition:
    return Condition(type=type_, status=Truth.UNKNOWN, reason=reason, message=message)


def quoted(type_: str, status: Truth, reason: str, message: str = "") -> Condition:
    """One whose reason is not a word of ours: another object says it, or a field of the spec."""
    return Condition(type=type_, status=status, reason=reason, message=message)


def settled(
    new: Iterable[Condition], old: Sequence[Condition], *, generation: int, now: datetime
) -> list[Condition]:
    """The new conditions, sorted by type, each with the time its status last changed.

    That time exists nowhere but in the old condition, so it is carried over while the status stays. Messages
    quote Slurm and whoever wrote an object, and end up at terminals.
    """
    before = {condition.type: condition for condition in old}
    return [
        wire.replace(
            condition,
            message=cut(printable(condition.message), MOST_CHARACTERS),
            observed_generation=generation,
            last_transition_time=_since(condition, before.get(condition.type), now),
        )
        for condition in sorted(new, key=lambda condition: condition.type)
    ]


def _since(condition: Condition, before: Condition | None, now: datetime) -> datetime:
    if before is not None and before.status == condition.status and before.last_transition_time is not None:
        return before.last_transition_time
    return now.replace(microsecond=0)
