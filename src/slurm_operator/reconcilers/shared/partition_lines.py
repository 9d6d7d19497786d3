"""Partitions that a composed object writes into its Controller's extraConf, those on their way out included.

slurmctld ends the jobs of a partition that a new configuration lacks, at once and without a word. So a
partition that nobody wants any more is first drained: it takes no new jobs, those that wait still get their
turn, and its line goes with the last of them.
"""

from collections.abc import Collection

from slurm_operator.api.slinky.controller import Controller
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.plan.actions import Wait
from slurm_operator.slurm.conf.lines import Pair, Setting, parse, render
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

JOBS_TOLD = 5

# Between these two lines of a Controller's extraConf stand the partitions of its Cluster. The extraConf of
# the Cluster itself follows.
CLUSTER_BEGIN = "# Partitions of the Cluster"
CLUSTER_END = "# extraConf of the Cluster"


def current_lines(controller: Controller | None, begin: str, end: str) -> list[Setting]:
    """The partition lines that the Controller has from us now, between two lines of its extraConf."""
    if controller is None:
        return []
    _, _, rest = controller.spec.extra_conf.partition(f"{begin}\n")
    ours, _, _ = rest.partition(end)
    return sorted(parse(ours, "").all("PartitionName"), key=lambda line: line.value)


def leaving(current: list[Setting], wanted: Collection[str], slurm: Snapshot | Unreachable) -> list[Setting]:
    """Lines of partitions that are no longer wanted and have to stay for now."""
    return [line for line in current if line.value not in wanted and in_the_way(slurm, line.value)]


def waits(lines: list[Setting], slurm: Snapshot | Unreachable) -> list[Wait]:
    """What holds up each leaving partition."""
    return [
        Wait(
            subject=f"partition {line.value}",
            reason=Reason.PARTITION_IN_USE,
            message=f"Partition {line.value} takes no new jobs, and is removed when its last job has ended: "
            f"{in_the_way(slurm, line.value)}.",
        )
        for line in lines
    ]


def draining(line: Setting) -> str:
    """The same partition, taking no new jobs."""
    kept = [pair for pair in line.pairs if pair.key.lower() not in ("state", "default")]
    return render([Setting((*kept, Pair("State", "DRAIN")))]).rstrip("\n")


def in_the_way(slurm: Snapshot | Unreachable, partition: str) -> str:
    """Why this partition cannot go yet; empty when it can."""
    if not isinstance(slurm, Snapshot):
        return f"whether it has any cannot be seen, {slurm.why}"
    found = slurm.partitions.get(partition)
    if found is None:
        return ""
    jobs = sorted(job.job_id for job in slurm.jobs_in(partition))
    if jobs:
        return f"jobs {first_few(jobs, JOBS_TOLD)}"
    return "slurmctld still takes jobs for it" if found.takes_jobs else ""
