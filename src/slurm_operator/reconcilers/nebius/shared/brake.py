"""How many workers may be taken out of service before a person is asked.

A check that calls half of a NodeSet broken is more likely broken itself. So the nodes of each NodeSet are
counted: those that are about to be taken out of service, and those for which that happened within the window.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from slurm_operator.api.schema import durations
from slurm_operator.listing import first_few


@dataclass(frozen=True)
class Limit:
    """At most so many percent of the workers of a NodeSet within this time."""

    max_percent: int = 20
    window: timedelta = timedelta(hours=1)

    def allowed(self, workers: int) -> int:
        """How many that is. One is always allowed: of three workers, a fifth would be none."""
        return max(1, workers * self.max_percent // 100) if self.max_percent > 0 else 0


@dataclass(frozen=True)
class Excess:
    """A NodeSet of which more would be taken out of service than is allowed."""

    nodeset: str  # Empty for nodes of no NodeSet.
    workers: int
    recent: tuple[str, ...]
    wanted: tuple[str, ...]
    allowed: int

    def text(self, window: timedelta) -> str:
        whose = f"NodeSet {self.nodeset}" if self.nodeset else "the nodes that belong to no NodeSet"
        before = f", after {len(self.recent)}" if self.recent else ""
        return (
            f"{len(self.wanted)} of {self.workers} workers of {whose}{before} within "
            f"{durations.text(window)}; {self.allowed} may be ({first_few(self.wanted)})"
        )


def excesses(
    wanted: Collection[str],
    recent: Collection[str],
    nodes: Iterable[str],
    nodesets: Collection[str],
    limit: Limit,
) -> list[Excess]:
    """The NodeSets for which `wanted` would be too many, by name; none if all of it may be done."""
    members = _by_nodeset(nodes, nodesets)
    asked, before = _by_nodeset(set(wanted), nodesets), _by_nodeset(set(recent) - set(wanted), nodesets)
    return [found for name in sorted(asked) if (found := _excess(name, members, asked, before, limit))]


def _excess(
    name: str,
    members: Mapping[str, list[str]],
    asked: Mapping[str, list[str]],
    before: Mapping[str, list[str]],
    limit: Limit,
) -> Excess | None:
    workers = len(members.get(name, ()))
    wanted, recent, allowed = asked[name], before.get(name, []), limit.allowed(workers)
    if len(wanted) + len(recent) <= allowed:
        return None
    return Excess(name, workers, tuple(recent), tuple(wanted), allowed)


def nodeset_of(node: str, nodesets: Collection[str]) -> str:
    """The NodeSet whose worker has this name; empty if none has. Workers are called `<NodeSet>-<number>`."""
    name, _, number = node.rpartition("-")
    return name if number.isdecimal() and name in nodesets else ""


def _by_nodeset(nodes: Iterable[str], nodesets: Collection[str]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for node in sorted(nodes):
        found[nodeset_of(node, nodesets)].append(node)
    return found


def held(wanted: Iterable[str], found: Collection[Excess]) -> Iterator[str]:
    """Those of the nodes that wait for a person."""
    over = {node for one in found for node in one.wanted}
    return (node for node in wanted if node in over)
