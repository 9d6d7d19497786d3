"""Trackable resources and generic resources: `cpu=2,mem=24103M,gres/gpu=8` and `gpu:h100:8(S:0-1)`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Counts may carry a binary unit. Memory without one is in MiB; a plain count is a plain count.
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_COUNT = re.compile(r"(\d{1,20})(?:\.(\d{1,6}))?([KMGTPE]?)B?", re.ASCII | re.IGNORECASE)
MIB = 2**20

# What slurmctld writes when a node has nothing to say about its GRES.
_NOTHING = frozenset({"", "(null)", "N/A"})


class TresError(ValueError):
    """Not a list of resources."""


def count(text: str) -> int:
    """A number with an optional binary unit: `8`, `16K`, `1.5G`."""
    matched = _COUNT.fullmatch(text.strip())
    if matched is None:
        raise TresError(f"{text!r} is no count; write a number, or one with K, M, G, T or P behind it")
    whole, fraction, unit = matched[1], matched[2] or "", matched[3].upper()
    return int(whole + fraction) * _UNITS[unit] // int("1" + "0" * len(fraction))


def tres(text: str) -> dict[str, int]:
    """Resource to amount, memory in bytes: `cpu=2,mem=24103M,gres/gpu:h100=8`."""
    amounts: dict[str, int] = {}
    for part in _parts(text):
        name, equals, amount = part.partition("=")
        if not name or not equals:
            raise TresError(f"{part!r} is not of the form resource=amount")
        amounts[name] = count(amount) * (MIB if _is_bare_memory(name, amount) else 1)
    return amounts


def written_tres(amounts: Mapping[str, int]) -> str:
    """As Slurm writes it, sorted; `tres` reads it back. Memory in the largest unit that loses nothing."""
    return ",".join(f"{name}={_amount(name, amounts[name])}" for name in sorted(amounts))


def _is_bare_memory(name: str, amount: str) -> bool:
    return name == "mem" and amount.strip()[-1:].isdigit()


def _amount(name: str, amount: int) -> str:
    if name != "mem":
        return str(amount)
    if amount % MIB:
        raise TresError(f"memory is counted in MiB, and {amount} bytes are not whole ones")
    return f"{amount // MIB}M"


@dataclass(frozen=True, slots=True)
class Gres:
    """Some generic resource of a node or a job: eight GPUs of type h100."""

    name: str
    type: str = ""
    count: int = 1
    sockets: str = ""  # S:0-1, which sockets they sit on
    indices: str = ""  # IDX:0-3, which of them are in use
    no_consume: bool = False

    def __str__(self) -> str:
        """As in slurm.conf; what a node reports about sockets and indices follows in brackets."""
        head = ":".join(filter(None, [self.name, self.type, "no_consume" if self.no_consume else ""]))
        places = [f"S:{self.sockets}" if self.sockets else "", f"IDX:{self.indices}" if self.indices else ""]
        inside = ",".join(filter(None, places))
        return f"{head}:{self.count}" + (f"({inside})" if inside else "")


# The type may not begin like a count, or `gpu:8` would be ambiguous; slurm.conf(5) says "name[:type]:count".
_GRES = re.compile(
    r"(?P<name>[A-Za-z_][\w./-]*)"
    r"(?::(?P<type>(?!no_consume(?:[:(=]|$))[A-Za-z_][\w.+-]*|\d+[\w.+-]*[A-Za-z_][\w.+-]*(?=:)))?"
    r"(?P<no_consume>:no_consume)?"
    r"(?:[:=](?P<count>[\d.]+[KMGTPEkmgtpe]?))?"
    r"(?:\((?P<places>[^()]*)\))?",
    re.ASCII,
)


def gres(text: str) -> list[Gres]:
    """Every entry of a node's, a job's or a config line's GRES, in order.

    Takes all forms Slurm uses: `gpu:8`, `gpu:h100:8(S:0-1)`, `gpu:h100:2(IDX:0)`, a job's `gres/gpu:h100=2`.
    """
    return [_one_gres(part) for part in _parts(text)]


def gres_counts(entries: Iterable[Gres]) -> dict[str, int]:
    """How many of each name, whatever the type."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.name] = counts.get(entry.name, 0) + entry.count
    return counts


def _one_gres(part: str) -> Gres:
    matched = _GRES.fullmatch(part.removeprefix("gres/").removeprefix("gres:"))
    if matched is None:
        raise TresError(f"{part!r} is not of the form name[:type][:count]")
    places = _places(matched["places"] or "")
    return Gres(
        name=matched["name"],
        type=matched["type"] or "",
        count=count(matched["count"]) if matched["count"] else 1,
        sockets=places.get("S", ""),
        indices=places.get("IDX", ""),
        no_consume=matched["no_consume"] is not None,
    )


def _places(inside: str) -> dict[str, str]:
    """`S:0-1,IDX:0,2-3` by key; a comma also separates numbers within one."""
    places: dict[str, str] = {}
    key = ""
    for part in filter(None, inside.split(",")):
        name, colon, rest = part.partition(":")
        if colon:
            key = name
            places[key] = rest
        elif key:
            places[key] += f",{part}"
    return places


def _parts(text: str) -> list[str]:
    """Between the commas that stand outside brackets."""
    if text.strip() in _NOTHING:
        return []
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]
