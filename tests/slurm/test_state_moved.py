"""slurmctld's state under another path: what a cluster of Soperator goes on with, shown on real daemons."""

import shutil
from collections.abc import Callable

import pytest

from slurm_operator.insight.doctor.soperator.steps import RUNNING
from testing.daemons import SlurmDaemons

THEIRS, OURS = "/var/spool/slurmctld/state", "/var/spool/slurmctld/demo"


@pytest.fixture
def slurm(new_slurm: Callable[..., SlurmDaemons]) -> SlurmDaemons:
    found = new_slurm()
    found.add_worker("w-0")
    return found


def listed(slurm: SlurmDaemons) -> list[str]:
    """What the command that `doctor` gives shows."""
    return slurm.run("squeue", "-h", "-o", "%i", "-t", RUNNING).split()


def moved(slurm: SlurmDaemons) -> None:
    """A slurmctld that finds the same volume at another path."""
    slurm.head.slurmctld.stop()
    box = slurm.head.box
    shutil.move(box.path(THEIRS), box.path(OURS))
    slurm.write_config({"StateSaveLocation": OURS})
    slurm.head.slurmctld.start()


def test_pending_jobs_and_their_ids_outlive_the_move_and_run_when_the_partition_is_up_again(slurm):
    running = slurm.submit("sleep 300")
    slurm.wait_for(lambda: slurm.job_state(running) == "RUNNING", "the job to run")
    slurm.run("scontrol", "update", "partitionname=all", "state=down")
    waiting = slurm.submit("true")
    assert slurm.job_state(waiting) == "PENDING"
    assert listed(slurm) == [str(running)], "a pending job is not waited for"

    slurm.run("scancel", str(running))
    slurm.wait_for(lambda: not listed(slurm), "no job to run")
    moved(slurm)

    assert "state=up" in slurm.run("scontrol", "-o", "show", "partition", "all").lower()
    slurm.wait_for(lambda: slurm.job_state(waiting) == "COMPLETED", "the job that had waited")
    assert slurm.submit("true") > waiting, "ids go on"


def test_a_running_job_and_a_drain_outlive_it_too(slurm):
    running = slurm.submit("sleep 20")
    slurm.wait_for(lambda: slurm.job_state(running) == "RUNNING", "the job to run")
    slurm.run("scontrol", "update", "nodename=w-0", "state=drain", "reason=mine")
    moved(slurm)
    assert "DRAIN" in slurm.node_states("w-0")
    assert slurm.job_state(running) == "RUNNING"
    shown = slurm.run("scontrol", "-o", "show", "job", str(running))
    slurm.wait_for(lambda: slurm.job_state(running) == "COMPLETED", "the job to end")
    assert "Restarts=0" in shown


def test_without_its_state_slurmctld_forgets_every_job(slurm):
    """The control: with a place of its own, as before, the queue is lost."""
    slurm.run("scontrol", "update", "partitionname=all", "state=down")
    waiting = slurm.submit("true")
    slurm.head.slurmctld.stop()
    slurm.write_config({"StateSaveLocation": OURS})
    slurm.head.slurmctld.start()
    assert slurm.job_state(waiting) == "GONE"
