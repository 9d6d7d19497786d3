"""What slurmctld tells of its queue, in the words that the guide about autoscaling reads."""

import re
import urllib.request
from collections.abc import Callable

import pytest

from testing.daemons import SlurmDaemons
from testing.docs import ROOT

GUIDE = ROOT / "docs" / "guides" / "autoscaling.md"
LINES = (
    "NodeSet=cpu Feature=cpu",
    "PartitionName=cpu Nodes=cpu Default=YES State=UP MaxTime=UNLIMITED",
)
NAMES = ("jobs_pending", "jobs_hold", "jobs_min_job_nodes_nohold", "nodes_alloc", "nodes_mixed")


def queue(slurm: SlurmDaemons) -> dict[str, int]:
    """The metrics of the guide, of partition cpu."""
    url = f"http://{slurm.head.address}:6817/metrics/partitions"
    with urllib.request.urlopen(url, timeout=10) as answer:
        page = answer.read().decode()
    found = dict(re.findall(r'^slurm_partition_(\w+)\{partition="cpu"\} (\S+)$', page, re.MULTILINE))
    return {name: int(float(found[name])) for name in NAMES}


def wanted(slurm: SlurmDaemons) -> int:
    """The guide's sum."""
    pending, hold, largest, allocated, mixed = queue(slurm).values()
    return allocated + mixed + max(pending - hold, largest)


@pytest.mark.full
def test_the_queue_says_how_many_workers_are_wanted_also_in_front_of_none(
    new_slurm: Callable[..., SlurmDaemons],
):
    slurm = new_slurm(lines=LINES)
    assert wanted(slurm) == 0

    small = slurm.submit("sleep 600", "--exclusive")
    assert wanted(slurm) == 1
    large = slurm.submit("sleep 600", "--exclusive", "--nodes=2-4")
    assert wanted(slurm) == 2
    held = slurm.submit("sleep 600", "--nodes=5", "--hold")
    assert wanted(slurm) == 2
    assert (queue(slurm)["jobs_pending"], queue(slurm)["jobs_hold"]) == (3, 1)
    slurm.run("scancel", str(held))

    for name in ("w-0", "w-1"):
        slurm.add_worker(name, conf="Features=cpu")
    slurm.wait_for(lambda: slurm.job_state(small) == "RUNNING", "the small job to run")
    slurm.wait_for(lambda: wanted(slurm) == 3, f"a worker that is busy, and two more: {queue(slurm)}")
    slurm.run("scancel", str(small))
    slurm.wait_for(lambda: slurm.job_state(large) == "RUNNING", "the large job to run")
    slurm.wait_for(lambda: wanted(slurm) == 2, f"two busy workers: {queue(slurm)}")


def test_the_guide_reads_metrics_that_are_looked_at_here():
    named = set(re.findall(r"\bslurm_partition_(\w+)", GUIDE.read_text()))

    assert named == set(NAMES)
