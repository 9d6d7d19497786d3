"""What is wrong with a configuration file, and where."""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Kinds of trouble. Slurm's daemons refuse to start on all of them but the last."""

    SYNTAX = "Syntax"
    UNKNOWN_KEY = "UnknownKey"
    BAD_VALUE = "BadValue"
    BAD_INCLUDE = "BadInclude"
    IGNORED = "Ignored"  # Slurm takes the line, but not the way it reads.


@dataclass(frozen=True, slots=True, order=True)
class LineProblem:
    """One fault at one line. `slurm.conf:12: no key MaxJobCoutn; did you mean MaxJobCount?`"""

    file: str
    line: int
    reason: str
    fault: Fault = Fault.SYNTAX

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"

    @property
    def is_fatal(self) -> bool:
        """Whether Slurm would refuse the file, rather than pass over the line."""
        return self.fault is not Fault.IGNORED
