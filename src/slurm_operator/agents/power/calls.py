"""Calls of slurmctld: which numbers of which NodeSets they are about, and the notes that they come as."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from slurm_operator import wire
from slurm_operator.slurm.hostlist import HostlistError, expand

RESUME, SUSPEND, RESUME_FAIL = "resume", "suspend", "resume-fail"

_NAME: Final = re.compile(r"(?P<nodeset>.+)-(?P<ordinal>0|[1-9][0-9]{0,8})")


class CallError(ValueError):
    """A call that cannot be carried out, however often it is tried."""


class Note(wire.Record):
    """What one call of slurmctld left."""

    verb: str
    nodes: str
    jobs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Change:
    """What becomes of the active numbers of one NodeSet."""

    on: frozenset[int] = frozenset()
    off: frozenset[int] = frozenset()

    def then(self, other: "Change") -> "Change":
        """Both, the other one later: of a number that both name, its word counts."""
        return Change((self.on - other.off) | other.on, (self.off - other.on) | other.off)

    def applied(self, active: Iterable[int]) -> list[int]:
        return sorted(({*active} | self.on) - self.off)


@dataclass
class Batch:
    """Notes in their order, and what they come to, by NodeSet. `useless` are files that say nothing."""

    files: list[Path] = field(default_factory=list)
    changes: dict[str, Change] = field(default_factory=dict)
    useless: list[tuple[Path, str]] = field(default_factory=list)


def split(nodes: str) -> dict[str, frozenset[int]]:
    """`gpu-[2-3],cpu-0` by NodeSet. Raises CallError."""
    try:
        names = expand(nodes)
    except HostlistError as error:
        raise CallError(f"{nodes!r} is no list of nodes: {error}") from error
    found: defaultdict[str, set[int]] = defaultdict(set)
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            raise CallError(f"{name!r} is no node of a NodeSet: it does not end in a dash and a number")
        found[match["nodeset"]].add(int(match["ordinal"]))
    if not found:
        raise CallError("no node is named")
    return {nodeset: frozenset(numbers) for nodeset, numbers in found.items()}


def changes(verb: str, nodes: str) -> dict[str, Change]:
    """What a call asks for. A node that did not start is switched off like one that is not needed."""
    numbers = split(nodes)
    if verb == RESUME:
        return {nodeset: Change(on=those) for nodeset, those in numbers.items()}
    if verb in (SUSPEND, RESUME_FAIL):
        return {nodeset: Change(off=those) for nodeset, those in numbers.items()}
    raise CallError(f"there is no call {verb!r}")


def read_notes(directory: Path) -> Batch:
    """Every note that is there, the oldest first. What is being written has another name."""
    batch = Batch()
    for path in sorted(directory.glob("*.json")):
        try:
            note = wire.decode(path.read_bytes(), Note)
            merge(batch.changes, changes(note.verb, note.nodes))
        except (wire.DecodeError, CallError) as problem:
            batch.useless.append((path, str(problem)))
        else:
            batch.files.append(path)
    return batch


def merge(into: dict[str, Change], more: Mapping[str, Change]) -> None:
    for nodeset, change in more.items():
        into[nodeset] = into.get(nodeset, Change()).then(change)


def pending(active: Iterable[int], change: Change) -> Iterator[int]:
    """The numbers of a change that the active ones do not show yet."""
    there = set(active)
    yield from sorted((change.on - there) | (change.off & there))
