"""What a key of a configuration file is: its spelling, its values, and what may follow it on the line."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from slurm_operator.slurm.conf.values import Check


@dataclass(frozen=True, slots=True)
class Key:
    """One key. Slurm takes it in any case; `name` is how the man page writes it."""

    name: str
    check: Check
    repeats: bool = False  # Several lines add up; of any other key the last line counts.
    options: Mapping[str, "Key"] = field(default_factory=dict)  # What may follow on the same line.
    ignored: str = ""  # Why Slurm passes over it.
    refused: str = ""  # Why Slurm stops at it.


Table = Mapping[str, Key]


def keys(check: Check, names: str, *, ignored: str = "") -> Iterator[Key]:
    """A key for each of the names, all with the same values."""
    return (Key(name, check, ignored=ignored) for name in names.split())


def table(*members: Key) -> Table:
    """Keys by their lower-case names."""
    return {key.name.lower(): key for key in members}


def did_you_mean(name: str, known: Iterable[Key]) -> str:
    """`; did you mean MaxJobCount?`, or nothing when no key is near."""
    spelled = {key.name.lower(): key.name for key in known}
    near = get_close_matches(name.lower(), spelled, n=1, cutoff=0.75)
    return f"; did you mean {spelled[near[0]]}?" if near else ""
