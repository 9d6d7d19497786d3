"""What slurmctld tells of its queue, in the words that the guide about autoscaling reads."""

import re
import urllib.request
from collections.abc import Callable

import pytest

from testing.daemons import SlurmDaemons
from testing.docs import ROOT

GUIDE = ROOT / "docs" / "guides" / "autoscaling.md"
PENDING, RUNNING = "slurm_partition_jobs_pending", "slurm_partition_jobs_running"
LARGEST = "slurm_partition_jobs_max_job_nodes_nohold"
LINES = (
    "NodeSet=cpu Feature=cpu",
    "PartitionName=cpu Nodes=cpu Default=YES State=UP MaxTime=UNLIMITED",
)


def queue(slurm: SlurmDaemons) -> dict[str, float]:
    """The metrics of the guide, of partition cpu."""
    url = f"http://{slurm.head.address}:6817/metrics/partitions"
    with urllib.request.urlopen(url, timeout=10) as answer:
        page = answer.read().decode()
    found = re.findall(r'^(\w+)\{partition="cpu"\} (\S+)$', page, re.MULTILINE)
    return {name: float(value) for name, value in found if name in (PENDING, RUNNING, LARGEST)}


@pytest.mark.full
def test_a_queue_in_front_of_no_node_at_all_says_how_many_jobs_wait_and_what_the_largest_needs(
    new_slurm: Callable[..., SlurmDaemons],
):
    slurm = new_slurm(lines=LINES)
    assert queue(slurm) == {PENDING: 0, RUNNING: 0, LARGEST: 0}

    small = slurm.submit("sleep 600", "--exclusive")
    assert queue(slurm) == {PENDING: 1, RUNNING: 0, LARGEST: 1}
    large = slurm.submit("sleep 600", "--exclusive", "--nodes=2")
    assert queue(slurm) == {PENDING: 2, RUNNING: 0, LARGEST: 2}

    held = slurm.submit("sleep 600", "--nodes=5", "--hold")
    print("held", queue(slurm))
    slurm.run("scancel", str(held))
    for name in ("w-0", "w-1"):
        slurm.add_worker(name, conf="Features=cpu")
    slurm.wait_for(lambda: slurm.job_state(small) == "RUNNING", "the small job to run")
    print("small runs", queue(slurm))
    slurm.run("scancel", str(small))
    slurm.wait_for(lambda: slurm.job_state(large) == "RUNNING", "the large job to run")
    print("large runs", queue(slurm))


def test_the_guide_reads_metrics_that_slurmctld_has():
    named = set(re.findall(r"\bslurm_partition_\w+", GUIDE.read_text()))

    assert named == {PENDING, RUNNING, LARGEST}
