"""Jobs that write down their own lives, and what became of them."""

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

# Ledgers are mounted at /ledgers everywhere. One script for all tasks of an array: each finds its own line.
_SCRIPT = """\
set -- $(echo "{tasks}" | sed -n "$((${{SLURM_ARRAY_TASK_ID:-0}} + 1))p")
echo "start $SLURM_JOB_ID $(date +%s) $SLURMD_NODENAME" >> /ledgers/$1
for beat in $(seq $2); do sleep 0.5; echo beat >> /ledgers/$1; done
echo end >> /ledgers/$1
"""

# A job beats twice a second; on a busy machine it may be late, but not by this much.
SILENCE_S = 20.0


class Fate(Enum):
    KEPT = "ran to its end"
    NEVER_STARTED = "never started"
    LOST = "lost"
    EXCUSED = "ended with its machine or its slurmd"


@dataclass
class Job:
    """One job by its ledger: a job that slurmctld took while nobody heard the answer has one, too."""

    ledger: Path
    seconds: int
    excuses: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    @property
    def number(self) -> int | None:
        """Slurm's, once it has started."""
        lines = self.lines
        return int(lines[0].split()[1]) if lines else None

    @property
    def started_at(self) -> float:
        """By its own clock; 0 while it has not."""
        lines = self.lines
        return float(lines[0].split()[2]) if lines else 0.0

    @property
    def node(self) -> str | None:
        """Where it runs right now, by its own account."""
        lines = self.lines
        return lines[0].split()[-1] if lines and lines[-1] != "end" else None

    def is_beating(self) -> bool:
        """Whether it has not ended, and has written lately."""
        return self.node is not None and time.time() - self.ledger.stat().st_mtime < SILENCE_S

    @property
    def fate(self) -> Fate:
        return fate(self.lines, is_excused=bool(self.excuses))


def fate(lines: list[str], *, is_excused: bool) -> Fate:
    """What a ledger says once nothing runs any more: one start, one end, and the end comes last."""
    starts, ends = sum(line.startswith("start") for line in lines), lines.count("end")
    if starts == ends == 1 and lines[-1] == "end":
        return Fate.KEPT
    if is_excused:
        return Fate.EXCUSED
    return Fate.LOST if starts else Fate.NEVER_STARTED


def new(ledgers: Path, seconds: int) -> Job:
    """Named by nothing that is drawn: a seed that is played twice on one cluster has two ledgers."""
    return Job(ledgers / uuid.uuid4().hex[:12], seconds)


def script(jobs: Sequence[Job]) -> str:
    """What one job runs, or each task of an array."""
    return _SCRIPT.format(tasks="\n".join(f"{job.ledger.name} {2 * job.seconds}" for job in jobs))


def busy(jobs: Iterable[Job]) -> frozenset[str]:
    """Slurm nodes where a job runs, by the jobs' own account."""
    return frozenset(node for job in jobs if (node := job.node) is not None)
