"""One thing that `doctor` has looked at, and how bad it is."""

from collections.abc import Sequence
from enum import StrEnum

from slurm_operator import wire
from slurm_operator.manifests.objects import Unread

_SHOWN = 4


class Level(StrEnum):
    """How bad it is. Only FAIL makes the command fail."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    FAIL = "FAIL"


class Finding(wire.Record):
    """One thing that was looked at."""

    check: str
    level: Level
    message: str
    remedy: str = ""


def ok(check: str, message: str) -> Finding:
    return Finding(check=check, level=Level.OK, message=message)


def unread(check: str, what: Unread) -> Finding:
    return Finding(
        check=check,
        level=Level.WARN,
        message=f"Could not be looked at: {what.why}",
        remedy="Run this as somebody who may look there.",
    )


def listed(names: Sequence[object]) -> str:
    """The first few of these."""
    more = len(names) - _SHOWN
    return ", ".join(map(str, names[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
