"""The script by which a worker leaves whose image lacks our helper, with real daemons."""

import subprocess
from pathlib import Path

import pytest

from slurm_operator.reconcilers.nodeset.creation.prestop_script import LEAVE
from testing.daemons import SlurmDaemons


def leave(slurm: SlurmDaemons, log: Path, name: str = "w-0") -> "subprocess.Popen[bytes]":
    return slurm.workers[name].box.start(["/bin/sh", "-c", LEAVE], log, env={"POD_UID": "4f1c-22"})


def running(slurm: SlurmDaemons) -> int:
    slurm.workers["w-0"].box.path("/tmp/finish").unlink(missing_ok=True)
    job = slurm.submit("while test ! -e /tmp/finish; do sleep 0.2; done", "--nodelist=w-0")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", f"job {job} to run")
    return job


def finish(slurm: SlurmDaemons) -> None:
    slurm.workers["w-0"].box.path("/tmp/finish").touch()


def test_a_leaving_worker_drains_itself_and_waits_for_its_job(slurm, tmp_path):
    job = running(slurm)
    leaving = leave(slurm, tmp_path / "leave.log")
    slurm.wait_for(lambda: "DRAIN" in slurm.node_states("w-0"), "w-0 to be drained")

    shown = slurm.run("scontrol", "show", "node", "w-0")
    assert "slurm-operator: PodTerminating: the pod is asked to end (pod 4f1c-22)" in shown
    assert leaving.poll() is None
    finish(slurm)
    assert leaving.wait(timeout=60) == 0
    assert slurm.job_state(job) == "COMPLETED"


def test_a_leaving_worker_keeps_somebody_elses_reason_and_waits_for_a_suspended_job(slurm, tmp_path):
    job = running(slurm)
    slurm.run("scontrol", "suspend", str(job))
    slurm.run("scontrol", "update", "nodename=w-0", "state=drain", "reason=disk is loud")
    leaving = leave(slurm, tmp_path / "leave.log")

    with pytest.raises(subprocess.TimeoutExpired):
        leaving.wait(timeout=6)
    slurm.run("scontrol", "resume", str(job))
    finish(slurm)
    assert leaving.wait(timeout=60) == 0
    assert "Reason=disk is loud" in slurm.run("scontrol", "show", "node", "w-0")


def test_a_worker_that_slurm_does_not_know_leaves_at_once(slurm, tmp_path):
    slurm.run("scontrol", "delete", "nodename=w-0")

    assert leave(slurm, tmp_path / "leave.log").wait(timeout=30) == 0


def test_a_silent_slurmctld_is_no_proof_that_nothing_runs(new_slurm, tmp_path):
    slurm = new_slurm()
    slurm.add_worker("w-0")
    running(slurm)
    slurm.slurmctld.kill()
    leaving = leave(slurm, tmp_path / "leave.log")

    with pytest.raises(subprocess.TimeoutExpired):
        leaving.wait(timeout=40)
    finish(slurm)
    assert leaving.wait(timeout=90) == 0
