"""Which nodes we have written to since they were last read, and which jobs we have asked to end (`job 7`).

A snapshot that began before our write says nothing about what the write did, and the gate must know. A job
that was requeued may run elsewhere by then, and must not be ended there, too. Times are of the clock that
never runs backwards: a machine's clock set back would otherwise make an old answer look new.
"""

from collections.abc import Iterable
from dataclasses import dataclass

# A write without an answer is carried out when a hung slurmctld wakes up, beside the next requests and not
# before them. So once slurmctld has answered again, only what is asked for this much later counts.
SETTLE_SECONDS = 3.0

# What passes a message on to slurmctld gives up after so long: Slurm's MessageTimeout, by default. Until then
# a write that nobody answered may be carried out, or be carried out once more, also if slurmctld is well.
MESSAGE_TIMEOUT_SECONDS = 10.0


@dataclass
class _Entry:
    in_flight: int = 0
    ended_at: float = 0.0
    may_happen_until: float = 0.0
    unsure: bool = False
    answered_at: float | None = None


class Ledger:
    """Every write goes in here before it is sent, and comes out when nodes and jobs were read after it."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._behind: frozenset[str] = frozenset()

    @property
    def behind(self) -> frozenset[str]:
        """Nodes about which the latest snapshot may be wrong."""
        return self._behind

    def is_unsure(self, nodes: Iterable[str]) -> bool:
        """Whether a write to one of these nodes may yet take effect."""
        return any(name in self._entries and self._entries[name].unsure for name in nodes)

    @property
    def has_unsure(self) -> bool:
        return any(entry.unsure for entry in self._entries.values())

    def begin(self, nodes: Iterable[str]) -> None:
        for name in nodes:
            self._entries.setdefault(name, _Entry()).in_flight += 1
        self._behind = frozenset(self._entries)

    def end(self, nodes: Iterable[str], at: float, *, sure: bool, is_answered: bool = False) -> None:
        """The write was answered, or (`sure=False`) given up on.

        An answer that shows what we had read to be wrong (`is_answered`) makes nothing sure either.
        """
        for name in nodes:
            entry = self._entries[name]
            entry.in_flight -= 1
            entry.ended_at = at
            entry.unsure = entry.unsure or not sure
            if not sure:
                entry.answered_at = None
            if not (sure or is_answered):
                entry.may_happen_until = at + MESSAGE_TIMEOUT_SECONDS

    def read(self, began_at: float, ended_at: float) -> frozenset[str]:
        """Nodes and jobs were read, the first request at `began_at`. Gives the nodes this settled."""
        settled = {
            name for name, entry in self._entries.items() if self._is_settled(entry, began_at, ended_at)
        }
        for name in settled:
            del self._entries[name]
        self._behind = frozenset(self._entries)
        return frozenset(settled)

    def _is_settled(self, entry: _Entry, began_at: float, ended_at: float) -> bool:
        if entry.in_flight or began_at < entry.ended_at:
            return False
        if not entry.unsure:
            return True
        if entry.answered_at is None:
            entry.answered_at = ended_at
            return False
        return began_at >= max(entry.answered_at + SETTLE_SECONDS, entry.may_happen_until)
