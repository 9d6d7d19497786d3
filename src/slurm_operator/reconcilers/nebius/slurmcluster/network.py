"""topology.conf of a SlurmCluster: where its workers stand, by the labels of their Kubernetes nodes.

A place that was once known is kept: while a worker is powered down, and when labels are missing. What no
slurmctld would take is left out, and the worker stands under `unknown`.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from slurm_operator.slurm.conf.includes import load
from slurm_operator.slurm.conf.networks import TOPOLOGY_CONF
from slurm_operator.slurm.conf.node_places import paths
from slurm_operator.slurm.hostlist import MAX_SAFE_DIGITS, compress

# The root switch of workers whose NodeSet names no other fabric.
ROOT: Final = "root"
UNKNOWN: Final = "unknown"

_TIER: Final = "/tier-"
_DIGITS: Final = re.compile(r"\d+\Z", re.ASCII)


class Plugin(StrEnum):
    """Topologies that labels can describe."""

    TREE = "topology/tree"
    BLOCK = "topology/block"


@dataclass(frozen=True, order=True)
class Stand:
    """Where one worker stands below the root of its fabric, from the top down; if known."""

    worker: str
    fabric: str = ROOT
    path: tuple[str, ...] = ()


def tier_path(labels: Mapping[str, str], prefix: str, plugin: Plugin) -> tuple[str, ...]:
    """The switches above a Kubernetes node from the top down, or its block; empty if labels do not tell.

    Tiers count from 1, next to the node, without a gap. Tier 0 is the block.
    """
    start = prefix + _TIER
    tiers = {key.removeprefix(start): value for key, value in labels.items() if key.startswith(start)}
    if plugin is Plugin.BLOCK:
        return (safe_name(tiers["0"]),) if tiers.get("0") else ()
    numbers = sorted(int(tier) for tier in tiers if tier.isdecimal() and len(tier) < 4 and int(tier) > 0)
    names = [safe_name(tiers[str(number)]) for number in numbers if tiers.get(str(number))]
    is_whole = numbers == [*range(1, len(numbers) + 1)] and len(names) == len(numbers)
    return tuple(reversed(names)) if is_whole else ()


def safe_name(name: str) -> str:
    """A name that Slurm does not take for a number which it cannot hold."""
    digits = _DIGITS.search(name)
    return f"{name}_" if digits is not None and len(digits[0]) > MAX_SAFE_DIGITS else name


def known_paths(text: str, plugin: Plugin) -> dict[str, tuple[str, ...]]:
    """What an earlier file says of each worker; nothing of those that were nowhere, or of another plugin."""
    key = "BlockName=" if plugin is Plugin.BLOCK else "SwitchName="
    if not text.startswith(key):
        return {}
    below = 0 if plugin is Plugin.BLOCK else 1
    found = {worker: path[below:] for worker, path in paths(text).items()}
    return {worker: path for worker, path in found.items() if path and not is_unknown(path[-1])}


def is_unknown(unit: str) -> bool:
    return unit == UNKNOWN or unit.endswith(f".{UNKNOWN}")


def unknown_of(fabric: str) -> str:
    """The switch or block of workers of a fabric that stand nowhere else."""
    return UNKNOWN if fabric == ROOT else f"{fabric}.{UNKNOWN}"


def topology_conf(
    plugin: Plugin, stands: Iterable[Stand], block_size: int, kept: Collection[str] = ()
) -> str:
    """The file, sorted. `kept` are roots or blocks without nodes that records still name."""
    if plugin is Plugin.BLOCK:
        lines = [*_block_lines(stands, kept), f"BlockSizes={block_size}"]
    else:
        lines = _tree_lines(stands, kept)
    return "".join(f"{line}\n" for line in lines)


def _block_lines(stands: Iterable[Stand], kept: Collection[str]) -> list[str]:
    every = [*stands]
    found: dict[str, list[str]] = {name: [] for name in (*kept, *(() if every else (UNKNOWN,)))}
    for stand in every:
        found.setdefault(stand.path[-1] if stand.path else unknown_of(stand.fabric), []).append(stand.worker)
    return [_line("BlockName", name, Nodes=compress(found[name])) for name in sorted(found)]


def _tree_lines(stands: Iterable[Stand], kept: Collection[str]) -> list[str]:
    every = [*stands]
    tree = _Tree(frozenset({ROOT, *(stand.fabric for stand in every), *kept}))
    # Deep paths first: the top of a shallow one may be below another switch.
    for stand in sorted(every, key=lambda one: (-len(one.path), one)):
        tree.add(stand)
    tree.attach()
    roots = {*kept, *(stand.fabric for stand in every)} or {ROOT}
    return sorted(tree.lines(roots))


class _Tree:
    """Switches and the workers on them, without what slurmctld refuses, such as circles."""

    def __init__(self, reserved: frozenset[str]) -> None:
        self._reserved = reserved
        self._above: dict[str, str] = {}
        self._tops: dict[str, str] = {}
        self._nodes: defaultdict[str, list[str]] = defaultdict(list)
        self._unknown: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, stand: Stand) -> None:
        if not stand.path or not self._fits(stand.path):
            self._unknown[stand.fabric].append(stand.worker)
            return
        self._above |= {below: above for above, below in pairwise(stand.path)}
        self._tops.setdefault(stand.path[0], stand.fabric)
        self._nodes[stand.path[-1]].append(stand.worker)

    def attach(self) -> None:
        """What has nothing above it hangs below the root of its fabric; the rest does already."""
        for top, fabric in self._tops.items():
            self._above.setdefault(top, fabric)
        for fabric, workers in self._unknown.items():
            self._above[unknown_of(fabric)] = fabric
            self._nodes[unknown_of(fabric)] = workers

    def lines(self, roots: Iterable[str]) -> Iterator[str]:
        below: defaultdict[str, list[str]] = defaultdict(list)
        for child, above in self._above.items():
            below[above].append(child)
        for switch in {*roots, *below}:
            yield _line("SwitchName", switch, Switches=compress(below[switch]))
        for leaf, workers in self._nodes.items():
            yield _line("SwitchName", leaf, Nodes=",".join(sorted(workers)))

    def _fits(self, path: tuple[str, ...]) -> bool:
        is_named = any(unit in self._reserved or is_unknown(unit) for unit in path)
        is_twice = len(set(path)) != len(path)
        has_other = any(self._above.get(below, above) != above for above, below in pairwise(path))
        is_inner = path[-1] in self._above.values()
        has_nodes = any(unit in self._nodes for unit in path[:-1])
        return not (is_named or is_twice or has_other or is_inner or has_nodes or self._closes(path))

    def _closes(self, path: tuple[str, ...]) -> bool:
        """Whether the top of the path is below a switch of it already."""
        above = self._above.get(path[0])
        while above is not None and above not in path:
            above = self._above.get(above)
        return above is not None


def _line(key: str, name: str, **options: str) -> str:
    return " ".join([f"{key}={name}", *(f"{option}={value}" for option, value in options.items() if value)])


def kept_units(before: str, after: str, named: Collection[str] | None) -> list[str]:
    """Roots or blocks of the earlier file that the new one lacks, and that records name first.

    slurmctld ends when a record names one that is gone. None: nobody can tell, so all of them are named.
    """
    old, new = _first_units(before), _first_units(after)
    return sorted(unit for unit in old - new if named is None or unit in named)


def _first_units(text: str) -> set[str]:
    conf = load({TOPOLOGY_CONF: text}, TOPOLOGY_CONF)
    below = {unit for path in paths(text).values() for unit in path[1:]}
    lines = [*conf.all("SwitchName"), *conf.all("BlockName")]
    return {line.value for line in lines} - below
