"""The partitions of a Cluster as lines of slurm.conf, those included that are on their way out."""

from collections.abc import Iterator

from slurm_operator.api.shared import names
from slurm_operator.api.slinky.cluster import Cluster, ClusterPartition
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers.cluster.observe import Seen
from slurm_operator.reconcilers.shared import partition_lines
from slurm_operator.slurm.conf.lines import Setting, parse

BEGIN, END = partition_lines.CLUSTER_BEGIN, partition_lines.CLUSTER_END

ALL = "ALL"


def lines(seen: Seen) -> list[str]:
    """What stands between the marks: wanted partitions as they were written, then leaving ones by name."""
    wanted = [_partition_line(seen, partition) for partition in _given(seen.cluster)]
    return [*wanted, *(partition_lines.draining(line) for line in leaving(seen))]


def waits(seen: Seen) -> list[Wait]:
    """What holds up each leaving partition."""
    return partition_lines.waits(leaving(seen), seen.slurm)


def leaving(seen: Seen) -> list[Setting]:
    """Lines of partitions that are no longer wanted and have to stay for now."""
    wanted = {partition.name for partition in _given(seen.cluster)}
    return partition_lines.leaving(_current_lines(seen), wanted, seen.slurm)


def _given(cluster: Cluster) -> list[ClusterPartition]:
    return cluster.spec.partitions or [ClusterPartition(name="all", default=True)]


def _partition_line(seen: Seen, partition: ClusterPartition) -> str:
    """The user's options go in as they are: what is wrong with them, the check of the whole file says."""
    options = {pair.key.lower() for setting in parse(partition.config, "").settings for pair in setting.pairs}
    default = ["Default=YES"] if partition.default and "default" not in options else []
    words = [f"PartitionName={partition.name}", f"Nodes={_nodes(seen, partition)}", *default]
    return " ".join([*words, partition.config.strip()]).rstrip()


def _nodes(seen: Seen, partition: ClusterPartition) -> str:
    if not partition.node_sets:
        return ALL
    prefixes = {nodeset.name: nodeset.hostname_prefix for nodeset in seen.cluster.spec.node_sets}
    wanted = {
        names.slurm_node_set(prefixes.get(name, ""), names.cluster_part(seen.meta.name, name))
        for name in partition.node_sets
    }
    return ",".join(sorted({*wanted, *_still_there(seen, partition.name)}))


def _still_there(seen: Seen, partition: str) -> Iterator[str]:
    """NodeSets that leave the cluster, and with it this partition, and still have workers."""
    before = {
        word
        for line in _current_lines(seen)
        if line.value == partition
        for word in (line.option("Nodes") or "").split(",")
    }
    wanted = {names.cluster_part(seen.meta.name, one.name) for one in seen.cluster.spec.node_sets}
    for nodeset in seen.own("NodeSet"):
        is_leaving = nodeset.metadata.name not in wanted
        if isinstance(nodeset, NodeSet) and is_leaving and nodeset.status.replicas > 0:
            yield from before & {nodeset.slurm_name}


def _current_lines(seen: Seen) -> list[Setting]:
    """The partition lines that the Controller has from us now."""
    return partition_lines.current_lines(seen.controller, BEGIN, END)
