"""What is news about Ready: that it is lost, that it is back, and what is wrong with something meanwhile.

What starts says in its condition how far it has come, and better than ten events would.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from slurm_operator.api.shared.conditions import DEGRADED, READY, Condition, Truth
from slurm_operator.runtime.report.event_batches import Words
from slurm_operator.runtime.report.status_throttle import Who


class Readiness:
    """Who was ready and is no longer. After a restart of ours only its condition says that it is back."""

    def __init__(self) -> None:
        self._lost: set[Who] = set()

    def news(
        self, who: Who, old: Mapping[str, Any], new: Iterable[Condition], generation: int
    ) -> Words | None:
        """What to tell about a status that was just written in place of an old one.

        Ready that somebody gives up, by asking for something else, is not lost.
        """
        now = {condition.type: condition for condition in new}
        if READY not in now:
            return None
        ready = now[READY]
        if ready.status is Truth.TRUE:
            return self._back(who, ready)
        is_bad = DEGRADED in now and now[DEGRADED].status is Truth.TRUE
        conditions = {one["type"]: one for one in old.get("conditions") or ()}
        before = conditions.get(READY, {})
        is_asked_for = not is_bad and before.get("observedGeneration") != generation
        is_lost = before.get("status") == Truth.TRUE and not is_asked_for
        if is_lost:
            self._lost.add(who)
        if is_lost or (is_bad and before.get("reason") != ready.reason):
            return Words(ready.reason, (ready.message,), "Warning" if is_bad else "Normal", at_once=is_bad)
        return None

    def _back(self, who: Who, ready: Condition) -> Words | None:
        if who not in self._lost:
            return None
        self._lost.remove(who)
        return Words(ready.reason, (ready.message,))

    def forget(self, who: Who) -> None:
        self._lost.discard(who)
