"""What follows from a Cluster, as a real slurmctld takes it."""

from collections.abc import Callable

import pytest
from test_language_rehearsal import BASE, box, rehearsal

from testing.boxed.box import Box
from testing.daemons import SlurmDaemons
from testing.golden import golden_manifests

__all__ = ["box"]

GOLDEN = golden_manifests("cluster")
NODESETS = "".join(f"NodeSet={name} Feature={name}\n" for name in ("demo-cpu", "demo-gpu", "gpu"))


@pytest.mark.parametrize("name", GOLDEN)
def test_slurmctld_runs_with_the_lines_of_every_golden_cluster(box: Box, name: str) -> None:
    conf = next(m["spec"]["extraConf"] for m in GOLDEN[name] if m["kind"] == "Controller")
    files = next(m["data"] for m in GOLDEN[name] if m["kind"] == "ConfigMap")

    assert rehearsal(box, {"slurm.conf": BASE + NODESETS + conf, **files}) == ""


def test_a_leaving_partition_may_be_drained_in_the_file(box: Box) -> None:
    lines = "PartitionName=all Nodes=ALL Default=YES\nPartitionName=gpu Nodes=gpu State=DRAIN\n"

    assert rehearsal(box, {"slurm.conf": BASE + NODESETS + lines}) == ""


def test_jobs_of_a_drained_partition_run_and_wait_and_end_as_if_nothing_had_happened(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """The steps in which a partition leaves a Cluster: drained while there are jobs, and then gone."""
    both = ("PartitionName=all Nodes=ALL Default=YES", "PartitionName=old Nodes=ALL")
    slurm = new_slurm(lines=both)
    slurm.add_worker("w-0")
    running = slurm.submit("sleep 600", "--partition=old", "--exclusive")
    slurm.wait_for(lambda: slurm.job_state(running) == "RUNNING", "the first job to run")
    waiting = slurm.submit("sleep 600", "--partition=old", "--exclusive")

    slurm.write_config(lines=(both[0], f"{both[1]} State=DRAIN"))
    slurm.reconfigure()

    assert slurm.job_state(running) == "RUNNING"
    refused = slurm.head.box.run("sbatch", "--partition=old", "--wrap=true", check=False)
    assert "partition" in refused.stderr.lower()
    slurm.run("scancel", str(running))
    slurm.wait_for(lambda: slurm.job_state(waiting) == "RUNNING", "the waiting job's turn")
    slurm.run("scancel", str(waiting))
    slurm.wait_for(lambda: slurm.run("squeue", "--noheader").strip() == "", "the last job to end")
    slurm.write_config(lines=both[:1])
    slurm.reconfigure()
    assert "PartitionName=old" not in slurm.run("scontrol", "--oneliner", "show", "partition")
