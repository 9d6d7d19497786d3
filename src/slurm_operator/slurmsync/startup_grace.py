"""Slurm clusters that were not read yet since we began: what people were told before may stand until then.

A restart changes nothing in the world. An operator that only does not know yet would write that down, and
take it back a moment later, in the status of every object.
"""

from collections.abc import Callable, Collection

from slurm_operator.api.shared.meta import ObjectKey

# Longer than a Slurm cluster that is well takes to answer on a machine that is not.
FIRST_WORD_SECONDS = 60.0


class FirstWords:
    """Whose first word is still to come. That nothing was answered is no word."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began_at: float | None = None
        self._asked: frozenset[ObjectKey] = frozenset()
        self._are_all_known = False
        self._read: set[ObjectKey] = set()

    def ask(self, clusters: Collection[ObjectKey], *, are_all_known: bool) -> None:
        """These are asked from now on; there may be others while not everything about them has been read."""
        if self._began_at is None:
            self._began_at = self._clock()
        self._asked, self._are_all_known = frozenset(clusters), are_all_known

    def came(self, cluster: ObjectKey) -> None:
        self._read.add(cluster)

    def left_seconds(self, cluster: ObjectKey) -> float:
        """For how long the first word of this cluster may still be waited for; none when it came."""
        is_to_come = cluster not in self._read and (cluster in self._asked or not self._are_all_known)
        if self._began_at is None or not is_to_come:
            return 0.0
        return max(0.0, self._began_at + FIRST_WORD_SECONDS - self._clock())
