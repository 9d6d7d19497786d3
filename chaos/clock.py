"""The operator's clock, seconds or minutes away from everybody else's.

Only the operator's: a slurmctld whose clock jumps beyond SlurmdTimeout ends jobs. And only one that
asks the C library for the time: a static program, as those in Go are, has a clock that nobody can reach.
"""

import random
import struct
from pathlib import Path

from chaos.impact import NOBODY, Blow, Missed
from chaos.processes import OPERATOR, maps
from chaos.stage import Stage

SECONDS, MINUTES = (2, 60), (60, 600)


def skewed(stage: Stage, chance: random.Random) -> Blow:
    """Fast or slow: by seconds, as much as an old answer needs to look new; or by minutes, beyond what its
    tokens allow for, mostly.
    """
    if not any("skew.so" in maps(pid) for pid in stage.processes.of(OPERATOR)):
        raise Missed("the operator does not ask the library for the time")
    _set(stage.clock, drawn(chance))
    return NOBODY


def drawn(chance: random.Random) -> int:
    """So many seconds ahead, or behind."""
    least, most = chance.choice((SECONDS, MINUTES))
    return chance.choice((-1, 1)) * chance.randint(least, most)


def righted(stage: Stage) -> None:
    _set(stage.clock, 0)


def _set(directory: Path, seconds: int) -> None:
    """In place: the operator has mapped this very file."""
    with (directory / "seconds").open("r+b") as file:
        file.write(struct.pack("l", seconds))
