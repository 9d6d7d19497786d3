"""What a fault was about."""

from dataclasses import dataclass

WORKERS = 4
ALL = frozenset(f"cpu-{number}" for number in range(WORKERS))


class Missed(Exception):  # noqa: N818 - it tells what happened
    """There was nothing to hit."""


@dataclass(frozen=True)
class Blow:
    """The Slurm nodes that a fault is about; up to `spared` of them may come away without being touched."""

    nodes: frozenset[str] = frozenset()
    spared: int = 0

    def opportunities(self, busy: frozenset[str]) -> int:
        """How many nodes with a job it certainly is about."""
        return max(0, len(self.nodes & busy) - self.spared)


NOBODY = Blow()
EVERYBODY = Blow(ALL)
