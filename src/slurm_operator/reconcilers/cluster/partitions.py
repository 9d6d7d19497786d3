"""The partitions of a Cluster as lines of slurm.conf, those included that are on their way out.

slurmctld ends the jobs of a partition that a new configuration lacks, at once and without a word. So a
partition that nobody wants any more is first drained: it takes no new jobs, those that wait still get their
turn, and its line goes with the last of them.
"""

from collections.abc import Iterator

from slurm_operator.api import names
from slurm_operator.api.cluster import Cluster, ClusterPartition
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.plan.actions import Wait
from slurm_operator.reconcilers.cluster.observe import Seen
from slurm_operator.slurm.conf.lines import Pair, Setting, parse, render
from slurm_operator.slurm.snapshot import Snapshot

# Between these two lines of the Controller's extraConf stand the partitions of the Cluster.
BEGIN = "# Partitions of the Cluster"
END = "# extraConf of the Cluster"

ALL = "ALL"
JOBS_TOLD = 5


def lines(seen: Seen) -> list[str]:
    """What stands between the marks: wanted partitions as they were written, then leaving ones by name."""
    wanted = [_wanted(seen, partition) for partition in _given(seen.cluster)]
    return [*wanted, *(_draining(line) for line in leaving(seen))]


def waits(seen: Seen) -> list[Wait]:
    """What holds up each leaving partition."""
    return [
        Wait(
            subject=f"partition {line.value}",
            reason="PartitionInUse",
            message=f"Partition {line.value} takes no new jobs and goes with the last of its old ones: "
            f"{_in_the_way(seen, line.value)}.",
        )
        for line in leaving(seen)
    ]


def leaving(seen: Seen) -> list[Setting]:
    """Lines of partitions that are no longer wanted and have to stay for now."""
    wanted = {partition.name for partition in _given(seen.cluster)}
    return [line for line in _written(seen) if line.value not in wanted and _in_the_way(seen, line.value)]


def _given(cluster: Cluster) -> list[ClusterPartition]:
    return cluster.spec.partitions or [ClusterPartition(name="all", default=True)]


def _wanted(seen: Seen, partition: ClusterPartition) -> str:
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
        for line in _written(seen)
        if line.value == partition
        for word in (line.option("Nodes") or "").split(",")
    }
    wanted = {names.cluster_part(seen.meta.name, one.name) for one in seen.cluster.spec.node_sets}
    for nodeset in seen.own("NodeSet"):
        is_leaving = nodeset.metadata.name not in wanted
        if isinstance(nodeset, NodeSet) and is_leaving and nodeset.status.replicas > 0:
            yield from before & {nodeset.slurm_name}


def _written(seen: Seen) -> list[Setting]:
    """The partition lines that the Controller has from us now."""
    if seen.controller is None:
        return []
    _, _, rest = seen.controller.spec.extra_conf.partition(f"{BEGIN}\n")
    ours, _, _ = rest.partition(END)
    return sorted(parse(ours, "").all("PartitionName"), key=lambda line: line.value)


def _draining(line: Setting) -> str:
    kept = [pair for pair in line.pairs if pair.key.lower() not in ("state", "default")]
    return render([Setting((*kept, Pair("State", "DRAIN")))]).rstrip("\n")


def _in_the_way(seen: Seen, partition: str) -> str:
    """Why this partition cannot go yet; empty when it can."""
    slurm = seen.slurm
    if not isinstance(slurm, Snapshot):
        return f"whether it has any cannot be seen, {slurm.why}"
    found = slurm.partitions.get(partition)
    if found is None:
        return ""
    jobs = sorted(job.job_id for job in slurm.jobs_in(partition))
    if jobs:
        more = len(jobs) - JOBS_TOLD
        return f"jobs {', '.join(map(str, jobs[:JOBS_TOLD]))}" + (f" and {more} more" if more > 0 else "")
    return "slurmctld still takes jobs for it" if found.takes_jobs else ""
