"""How slurmrestd writes numbers, times and lists, and what we make of them.

Fields change their clothes between API versions: a number may be plain or `{set, infinite, number}`, a list
may be an array or text with commas. All of it is understood, so no version needs a reader of its own.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from sys import intern

from slurm_operator import wire
from slurm_operator.slurm.hostlist import MAX_SAFE_DIGITS, expand
from slurm_operator.slurm.states import JobState, NodeState

# Slurm marks "not set" and "infinite" by the last few values of an unsigned number, 32 bits or 64.
_FIRST_MARK = 2**32 - 3

# Brackets and separators, and more digits than surely fit into Slurm's numbers: then the name may be wrong.
_NEEDS_EXPANSION = re.compile(rf"[\[\],\s]|\d{{{MAX_SAFE_DIGITS + 1}}}", re.ASCII)


class Triple(wire.Record):
    """A number that may be missing or endless."""

    set: bool = False
    infinite: bool = False
    number: float = 0


Number = int | float | Triple | None
Words = list[str] | str | None
Text = str | None


def number(value: Number) -> float | None:
    """The value; None when it is not set or endless."""
    if isinstance(value, Triple):
        value = value.number if value.set and not value.infinite else None
    return None if value is None or value >= _FIRST_MARK else value


def whole(value: Number) -> int | None:
    """As `number`, without a fraction."""
    if type(value) is int and value < _FIRST_MARK:  # By far the most common, and there are millions.
        return value
    found = number(value)
    return None if found is None else int(found)


def count(value: Number) -> int:
    """As `whole`; nothing counts as zero."""
    return whole(value) or 0


def moment(value: Number) -> datetime | None:
    """A UNIX time; zero means never."""
    seconds = number(value)
    return _moment(seconds) if seconds else None


@lru_cache(maxsize=16384)
def _moment(seconds: float) -> datetime:
    """One object per second: nodes of one machine, and jobs of one array, share theirs."""
    return datetime.fromtimestamp(seconds, UTC)


def minutes(value: Number) -> timedelta | None:
    """A limit in minutes; None when there is none."""
    found = number(value)
    return None if found is None else timedelta(minutes=found)


def words(value: Words) -> tuple[str, ...]:
    """A list, or text with commas; without empty entries."""
    return _split(value if isinstance(value, str) else ",".join(value)) if value else ()


def _words(value: str) -> tuple[str, ...]:
    return tuple(stripped for part in value.split(",") if (stripped := part.strip()))


def text(value: Text) -> str:
    return value or ""


def shared(value: Text) -> str:
    """One object for all records with the same text: thousands of jobs have the same user and partition."""
    return intern(value) if value else ""


def _hosts(expression: str) -> tuple[str, ...]:
    if expression in ("", "(null)"):
        return ()
    return tuple(expand(expression)) if _NEEDS_EXPANSION.search(expression) else (expression,)


class _Remembered:
    """One object per text: nodes of one kind share their features, and thousands of jobs the same nodes.

    All clusters share what is remembered, so it is bounded by size: with a few letters slurmrestd can name
    65,536 nodes.
    """

    def __init__(self, read: Callable[[str], tuple[str, ...]]) -> None:
        self._read = read
        self._known: dict[str, tuple[str, ...]] = {}
        self._size = 0

    def __call__(self, text: str) -> tuple[str, ...]:
        found = self._known.get(text)
        if found is None:
            found = self._read(text)
            self._size += len(text) + _NAME_BYTES * len(found)
            if self._size > _MOST_REMEMBERED_BYTES:
                self._known, self._size = {}, 0
            else:
                self._known[text] = found
        return found


_NAME_BYTES = 72
_MOST_REMEMBERED_BYTES = 16 << 20

_split = _Remembered(_words)
_expanded = _Remembered(_hosts)


def hosts(expression: str) -> tuple[str, ...]:
    """The node names of a hostlist such as `gpu-[0-3]`."""
    return _expanded(expression)


def host_words(value: Words) -> tuple[str, ...]:
    """As `hosts`; an array may hold expressions too."""
    return _expanded(value if isinstance(value, str) else ",".join(value or ()))


# All words of Slurm together are shorter.
_LONGEST_STATE = 1000


@lru_cache(maxsize=1024)
def _node_state(found: tuple[str, ...]) -> NodeState:
    """One object per combination of words: ten thousand nodes have a dozen."""
    return NodeState.read(found)


@lru_cache(maxsize=1024)
def _job_state(found: tuple[str, ...]) -> JobState:
    return JobState.read(found)


def node_state(value: Words) -> NodeState:
    return _node_state(_state_words(value))


def job_state(value: Words) -> JobState:
    return _job_state(_state_words(value))


def _state_words(value: Words) -> tuple[str, ...]:
    found = words(value)
    if sum(map(len, found)) > _LONGEST_STATE:
        raise ValueError(f"a state of {sum(map(len, found))} letters")
    return found
