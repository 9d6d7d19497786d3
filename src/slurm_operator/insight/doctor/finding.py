"""One thing that `doctor` has looked at, and how bad it is."""

from collections.abc import Sequence
from enum import StrEnum

from slurm_operator import wire
from slurm_operator.listing import first_few
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
    is_unread: bool = False  # Nobody could look: this says nothing about what is there.


def ok(check: str, message: str) -> Finding:
    return Finding(check=check, level=Level.OK, message=message)


def note(check: str, message: str, remedy: str) -> Finding:
    return Finding(check=check, level=Level.NOTE, message=message, remedy=remedy)


def warn(check: str, message: str, remedy: str) -> Finding:
    return Finding(check=check, level=Level.WARN, message=message, remedy=remedy)


def fail(check: str, message: str, remedy: str) -> Finding:
    return Finding(check=check, level=Level.FAIL, message=message, remedy=remedy)


def unread(check: str, what: Unread) -> Finding:
    found = warn(check, f"Could not be looked at: {what.why}", "Run this as somebody who may look there.")
    return wire.replace(found, is_unread=True)


def listed(names: Sequence[object]) -> str:
    """The first few of these."""
    return first_few(names, _SHOWN)
