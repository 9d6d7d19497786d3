"""How far something has come is told every two seconds; that it has arrived, or is in trouble, at once.

What starts takes a dozen steps in its first second. A status for each would be as many requests, would wake
everybody who watches, and nobody could read them.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from slurm_operator.api.shared.conditions import DEGRADED, PROGRESSING, READY, Truth
from slurm_operator.api.shared.meta import ObjectKey

TOLD_EVERY_SECONDS = 2.0

# One reconciler and one of its objects.
Who = tuple[str, ObjectKey]


class StatusThrottle:
    """Since when there has been progress that was not told yet."""

    def __init__(self) -> None:
        self._untold_since: dict[Who, float] = {}

    def left_seconds(self, who: Who, now: float) -> float:
        """For how long progress that is seen now may still wait for more of it."""
        return max(0.0, self._untold_since.setdefault(who, now) + TOLD_EVERY_SECONDS - now)

    def settle(self, who: Who) -> None:
        """Its status is written, or the object is gone."""
        self._untold_since.pop(who, None)


def is_mere_progress(old: Mapping[str, Any], new: Mapping[str, Any], urgent: Collection[str]) -> bool:
    """Whether a status only says how far an object has come on a way that goes on.

    Its spec is the same, no condition has changed sides, and nobody decides by what did change.
    """
    return (
        is_on_its_way(new)
        and _sides(new) == _sides(old)
        and all(old.get(field) == new.get(field) for field in urgent)
    )


def is_on_its_way(status: Mapping[str, Any]) -> bool:
    conditions = status.get("conditions") or ()
    return any(one["type"] == PROGRESSING and one["status"] == Truth.TRUE for one in conditions)


class _Side(NamedTuple):
    """Where a condition stands, and about which version of the spec."""

    status: str
    generation: int | None


def _sides(status: Mapping[str, Any]) -> dict[str, _Side]:
    """Each condition that people act on.

    What is wrong with something that does not run anyway is told like its progress: a volume that is not
    bound yet and a Slurm that does not answer yet are often there a moment later.
    """
    conditions = status.get("conditions") or ()
    sides = {one["type"]: _Side(one["status"], one.get("observedGeneration")) for one in conditions}
    if READY in sides and sides[READY].status != Truth.TRUE:
        sides.pop(DEGRADED, None)
    return sides
