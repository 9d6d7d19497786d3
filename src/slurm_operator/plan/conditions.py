"""What a kind says about itself: conditions that `kubectl wait` can use."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from slurm_operator import wire

READY = "Ready"
PROGRESSING = "Progressing"
DEGRADED = "Degraded"


class Condition(wire.CamelRecord):
    """One statement about an object, in the shape Kubernetes has for it."""

    type: str
    status: str
    reason: str
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None

    @classmethod
    def true(cls, type_: str, reason: str, message: str = "") -> "Condition":
        return cls(type=type_, status="True", reason=reason, message=message)

    @classmethod
    def false(cls, type_: str, reason: str, message: str = "") -> "Condition":
        return cls(type=type_, status="False", reason=reason, message=message)

    @classmethod
    def unknown(cls, type_: str, reason: str, message: str = "") -> "Condition":
        return cls(type=type_, status="Unknown", reason=reason, message=message)

    @property
    def is_true(self) -> bool:
        return self.status == "True"


def settled(
    new: Iterable[Condition], old: Sequence[Condition], *, generation: int, now: datetime
) -> list[Condition]:
    """The new conditions, sorted by type, each with the time its status last changed.

    That time exists nowhere but in the old condition, so it is carried over while the status stays.
    """
    before = {condition.type: condition for condition in old}
    return [
        wire.replace(
            condition,
            observed_generation=generation,
            last_transition_time=_since(condition, before.get(condition.type), now),
        )
        for condition in sorted(new, key=lambda condition: condition.type)
    ]


def _since(condition: Condition, before: Condition | None, now: datetime) -> datetime:
    if before is not None and before.status == condition.status and before.last_transition_time is not None:
        return before.last_transition_time
    return now.replace(microsecond=0)


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type_), None)
