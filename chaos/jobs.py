"""Jobs that write down their own lives, and what became of them."""

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

_SCRIPT = """\
echo "start $SLURM_JOB_ID $SLURMD_NODENAME" >> {path}
for beat in $(seq {beats}); do sleep 0.5; echo beat >> {path}; done
echo end >> {path}
"""


class Fate(Enum):
    KEPT = "ended by itself"
    WAITING = "never started"
    LOST = "lost"
    EXCUSED = "its machine was unplugged"


@dataclass
class Job:
    """One job by its ledger; `number` is Slurm's."""

    number: int
    ledger: Path
    seconds: int
    excuses: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    @property
    def node(self) -> str | None:
        """Where it runs right now, by its own account."""
        lines = self.lines
        return lines[0].split()[-1] if lines and lines[-1] != "end" else None

    @property
    def fate(self) -> Fate:
        lines = self.lines
        starts, ends = sum(line.startswith("start") for line in lines), lines.count("end")
        if starts == ends == 1 and lines[-1] == "end":
            return Fate.KEPT
        if self.excuses:
            return Fate.EXCUSED
        return Fate.LOST if starts else Fate.WAITING


def script(ledgers: Path, chance: random.Random) -> tuple[Path, int, str]:
    """The ledger, how long the job takes, and what it runs. Ledgers are mounted at /ledgers everywhere."""
    name, seconds = uuid.UUID(int=chance.getrandbits(128)).hex[:12], chance.randint(4, 20)
    return ledgers / name, seconds, _SCRIPT.format(path=f"/ledgers/{name}", beats=2 * seconds)


def running_on(jobs: list[Job], nodes: set[str]) -> Iterator[Job]:
    """Jobs that run on one of these Slurm nodes, by their own account."""
    return (job for job in jobs if job.node in nodes)
