"""Pods of workers that somebody deletes: refused, and where it is forced, not without a word."""

import re

import pytest
from job_ledger import Ledger
from operator_rig import Slurm, until
from test_slurm_workers import operator, slurm
from worker_cases import wait_draining

from slurm_operator.api import names
from slurm_operator.local.errors import LocalError

__all__ = ["operator", "slurm"]

pytestmark = pytest.mark.timeout(600)


def force(slurm: Slurm, pod: str) -> None:
    """As the refusal says it can be done."""
    slurm.kubectl("annotate", "pod", pod, f"{names.ALLOW_DELETION}=true")
    slurm.kubectl("delete", "pod", pod, "--wait=false")


def comment(job: Ledger) -> str:
    """What the owner of a job reads."""
    found = re.search(r"AdminComment=(.*)", job.slurm.run("scontrol", "show", "job", str(job.job)))
    return found[1] if found else ""


def test_a_worker_is_not_deleted_by_hand_and_where_that_is_forced_it_waits_for_its_job(slurm):
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()

    with pytest.raises(LocalError, match="may have running jobs, so it is not deleted"):
        slurm.kubectl("delete", "pod", job.node, "--wait=false")
    job.outlives(1)
    assert slurm.states()[job.node] == "allocated", "nothing has changed"

    force(slurm, job.node)
    wait_draining(slurm, job)
    until(lambda: "PodTerminating" in comment(job), 60, lambda: f"a word to its owner: {comment(job)!r}")
    job.outlives(5)
    assert slurm.pods() == before
    job.wait_ended_by_itself()
    until(
        lambda: slurm.pods().get(job.node) not in (None, before[job.node]),
        120,
        lambda: f"another: {slurm.pods()}",
    )
    slurm.wait_idle(2)


@pytest.mark.full
def test_past_the_refusal_a_deleted_pod_takes_its_job_along_when_its_grace_period_is_over(slurm):
    """The control: it is the policy that keeps people from that."""
    slurm.apply(slurm.nodeset(terminationGracePeriodSeconds=10, labels={"changed": "yes"}))
    until(lambda: all(grace == "10" for grace in graces(slurm)), 180, lambda: f"new pods: {graces(slurm)}")
    slurm.wait_idle(2)
    job = Ledger(slurm, "--exclusive")

    force(slurm, job.node)

    until(lambda: not job.is_running(), 120, lambda: "the job to be lost")
    assert "end" not in job.lines


def graces(slurm: Slurm) -> list[str]:
    path = "jsonpath={.items[*].spec.terminationGracePeriodSeconds}"
    return slurm.kubectl("get", "pods", "-l", "app.kubernetes.io/name=slurmd", "-o", path).split()
