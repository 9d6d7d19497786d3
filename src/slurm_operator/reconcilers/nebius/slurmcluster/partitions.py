"""The partitions of a SlurmCluster, of every configType, and the NodeSets they name that do not exist."""

from dataclasses import dataclass
from typing import Final

from slurm_operator.api.nebius.slurm_settings import Partition, PartitionsBy
from slurm_operator.plan.actions import Wait
from slurm_operator.printable import cut
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen
from slurm_operator.reconcilers.nebius.slurmcluster.older_worker import nodeset_lines
from slurm_operator.reconcilers.shared import partition_lines
from slurm_operator.slurm.conf.lines import Setting, parse

# Between these two lines of the Controller's extraConf stand the partitions of the cluster.
BEGIN: Final = "# Partitions of the SlurmCluster"
END: Final = "# customSlurmConfig of the SlurmCluster"

_OPTIONS: Final = "MaxTime=INFINITE State=UP OverSubscribe=YES"
DEFAULT: Final = (
    f"PartitionName=main Nodes=ALL Default=YES PriorityTier=10 {_OPTIONS}",
    f"PartitionName=hidden Nodes=ALL Default=NO PriorityTier=10 PreemptMode=OFF Hidden=YES {_OPTIONS}",
)

_ABSENT: Final = "the NodeSet does not exist"
_EMPTY: Final = "the NodeSet has no replicas"


@dataclass(frozen=True)
class Unresolved:
    """A reference of a partition to a NodeSet without nodes."""

    partition: str
    nodeset: str
    why: str

    def __str__(self) -> str:
        return f'partition "{self.partition}": NodeSet "{self.nodeset}" is ignored ({self.why})'


def lines(seen: Seen) -> list[str]:
    """What stands between the marks: wanted partitions as they were written, then leaving ones by name."""
    return [*wanted_lines(seen), *(partition_lines.draining(line) for line in leaving(seen))]


def waits(seen: Seen) -> list[Wait]:
    """What holds up each leaving partition."""
    return partition_lines.waits(leaving(seen), seen.slurm)


def leaving(seen: Seen) -> list[Setting]:
    """Lines of partitions that are no longer wanted and have to stay for now."""
    wanted = {line.value for line in parse("\n".join(wanted_lines(seen)), "").all("PartitionName")}
    current = partition_lines.current_lines(seen.controller, BEGIN, END)
    return partition_lines.leaving(current, wanted, seen.slurm)


def wanted_lines(seen: Seen) -> list[str]:
    config = seen.spec.partition_configuration
    match config.config_type:
        case PartitionsBy.STRUCTURED:
            return [line for one in config.partitions for line in _structured(seen, one)]
        case PartitionsBy.CUSTOM:
            return [*config.raw_config, *nodeset_lines(seen.spec)]
        case _:
            return [*DEFAULT, *nodeset_lines(seen.spec)]


def _structured(seen: Seen, partition: Partition) -> list[str]:
    """The line of one partition. One that has no nodes left stays, with the jobs that wait in it."""
    if partition.is_all:
        return [f"PartitionName={partition.name} Nodes=ALL {partition.config.strip()}".rstrip()]
    if not partition.node_set_refs:
        return [f"# Partition {partition.name} is skipped: it names no NodeSet."]
    known = [ref for ref in dict.fromkeys(partition.node_set_refs) if _is_there(seen, ref)]
    nodes = ",".join(known) or '""'
    return [f"PartitionName={partition.name} Nodes={nodes} {partition.config.strip()}".rstrip()]


def _is_there(seen: Seen, ref: str) -> bool:
    """Slurm knows the NodeSet. One that is deleted is named until its last worker is gone."""
    part = seen.workers.get(ref)
    return part is not None and not (part.metadata.is_terminating and part.status.replicas == 0)


def unresolved(seen: Seen) -> list[Unresolved]:
    """References that bring no node into their partition."""
    replicas = {one.metadata.name: one.spec.replicas for one in seen.nodesets if one.spec is not None}
    return [
        Unresolved(partition.name, ref, _EMPTY if ref in replicas else _ABSENT)
        for partition in _with_refs(seen)
        for ref in dict.fromkeys(partition.node_set_refs)
        if not replicas.get(ref)
    ]


def unresolved_text(seen: Seen, most: int) -> str:
    """All of them, then the partitions that have no nodes at all, in at most so many characters."""
    found = unresolved(seen)
    by_partition: dict[str, int] = {}
    for one in found:
        by_partition[one.partition] = by_partition.get(one.partition, 0) + 1
    empty = [
        f'partition "{partition.name}" has no nodes'
        for partition in _with_refs(seen)
        if by_partition.get(partition.name) == len(set(partition.node_set_refs))
    ]
    return _joined([*map(str, found), *empty], most)


def _with_refs(seen: Seen) -> list[Partition]:
    config = seen.spec.partition_configuration
    if config.config_type is not PartitionsBy.STRUCTURED:
        return []
    return [one for one in config.partitions if one.node_set_refs and not one.is_all]


def _joined(entries: list[str], most: int) -> str:
    """As many as fit, with how many more there are."""
    whole = "; ".join(entries)
    if len(whole) <= most:
        return whole
    for kept in range(len(entries) - 1, 0, -1):
        text = f"{'; '.join(entries[:kept])}; and {len(entries) - kept} more"
        if len(text) <= most:
            return text
    return cut(whole, most)
