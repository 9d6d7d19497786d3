"""Where a node stands in each network topology: `default:sw1`, `tree:root:sw1,blocks:b7`."""

import re
from dataclasses import dataclass
from typing import Self

# topology.conf(5): a switch's name cannot be longer. Blocks and rings have no limit of their own.
MAX_SWITCH_CHARACTERS = 64

_NAME = re.compile(r"[^\s,:\"'\\\[\]=#]+", re.ASCII)


class TopologyError(ValueError):
    """Not a place in a topology."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One node's place in one topology: the switches from the top down, or a block, ring or torus."""

    topology: str
    units: tuple[str, ...]

    def __str__(self) -> str:
        return ":".join((self.topology, *self.units))

    @classmethod
    def read(cls, text: str) -> Self:
        topology, *units = text.split(":")
        if not units or not all(_NAME.fullmatch(name) for name in (topology, *units)):
            raise TopologyError(f"{text!r} is no place in a topology; write topology:unit, as in default:sw1")
        return cls(topology, tuple(units))


def places(text: str) -> tuple[Place, ...]:
    """Every place in a node's topology, which may name several topologies; none for an empty text."""
    found = tuple(Place.read(part.strip()) for part in text.split(",") if part.strip())
    named = [place.topology for place in found]
    if len(set(named)) != len(named):
        raise TopologyError(f"{text!r} names the same topology twice")
    return found


def is_readable(text: str) -> bool:
    """Whether it names places, or none; not whether Slurm knows them."""
    try:
        places(text)
    except TopologyError:
        return False
    return True


def are_same(one: str, other: str) -> bool:
    """Whether both put a node at the same places. What cannot be read is compared word for word."""
    try:
        return set(places(one)) == set(places(other))
    except TopologyError:
        return one == other
