"""Pods of workers that somebody deletes: refused, and where it is forced, not without a word."""

import re
import subprocess

import pytest
from job_ledger import Ledger
from operator_rig import Slurm, until
from test_kubectl_use import PROGRAM
from test_slurm_workers import cluster_of, operator, slurm
from worker_changes import is_terminating, wait_draining

from slurm_local.errors import LocalError
from slurm_local.kubernetes.api_call import Refused
from slurm_operator.api.shared import names

__all__ = ["operator", "slurm"]

pytestmark = pytest.mark.timeout(600)


def force(slurm: Slurm, pod: str) -> None:
    """As the refusal says it can be done."""
    slurm.kubectl("annotate", "pod", pod, f"{names.ALLOW_DELETION}=true")
    slurm.kubectl("delete", "pod", pod, "--wait=false")


def waits_and_is_replaced(slurm: Slurm, job: Ledger, before: dict[str, str]) -> None:
    """The pod stays until its job has run to its end; then another one takes its place."""
    job.outlives(5)
    assert slurm.pods() == before
    job.wait_ended_by_itself()
    until(
        lambda: slurm.pods().get(job.node) not in (None, before[job.node]),
        120,
        lambda: f"another: {slurm.pods()}",
    )
    slurm.wait_idle(2)


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
    waits_and_is_replaced(slurm, job, before)


@pytest.mark.full
def test_an_eviction_that_no_budget_holds_up_is_waited_out(slurm):
    """Kubernetes asks no budget about a pod that it takes for Pending, as while its kubelet cannot report."""
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()
    with pytest.raises(Refused, match="disruption budget"):
        evict(slurm, job.node)

    pending = '{"status": {"phase": "Pending"}}'
    slurm.kubectl("patch", "pod", job.node, "--subresource=status", "--type=merge", f"--patch={pending}")
    evict(slurm, job.node)

    wait_draining(slurm, job)
    waits_and_is_replaced(slurm, job, before)


def evict(slurm: Slurm, pod: str) -> None:
    path = f"/api/v1/namespaces/{slurm.namespace}/pods/{pod}/eviction"
    slurm.cluster.caller.call(
        "POST", path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    )


def with_grace(slurm: Slurm, seconds: int) -> None:
    """Workers whose pods wait no longer than this for their jobs."""
    slurm.apply(slurm.nodeset(terminationGracePeriodSeconds=seconds, labels={"changed": "yes"}))
    until(
        lambda: graces(slurm) == [str(seconds)] * 2,
        180,
        lambda: f"new pods: {graces(slurm)} {slurm.states()}",
    )
    slurm.wait_idle(2)


@pytest.mark.full
def test_what_may_be_requeued_is_when_the_grace_period_ends_and_its_owner_reads_why(operator):
    with cluster_of(operator, keeps_books=True) as slurm:
        with_grace(slurm, 30)
        job = Ledger(slurm, "--exclusive", "--requeue")

        force(slurm, job.node)
        wait_draining(slurm, job)
        until(lambda: slurm.job_state(job.job) == "PENDING", 120, lambda: job.seen_by_slurm())
        assert f"{job.node} is leaving (PodTerminating); this job is requeued" in comment(job)

        slurm.run("scontrol", "update", f"jobid={job.job}", "starttime=now")  # It would wait for two minutes.
        until(lambda: job.lines.count("start") == 2, 180, lambda: job.seen_by_slurm())
        assert "is leaving (PodTerminating)" in comment(job), "and still says so when it runs again"
        job.release()
        until(lambda: job.booked()[-1:] == ["COMPLETED|0:0"], 120, lambda: f"{job.booked()}")
        assert len(job.booked()) == 2, "the books tell both runs"


@pytest.mark.full
def test_past_the_refusal_a_deleted_pod_takes_its_job_along_when_its_grace_period_is_over(slurm):
    """The control: it is the policy that keeps people from that, and a job that is not requeued is lost."""
    with_grace(slurm, 10)
    job = Ledger(slurm, "--exclusive")

    force(slurm, job.node)

    until(job.is_lost, 120, lambda: "the job to be lost")
    assert "end" not in job.lines


def graces(slurm: Slurm) -> list[str]:
    path = "jsonpath={.items[*].spec.terminationGracePeriodSeconds}"
    return slurm.kubectl("get", "pods", "-l", "app.kubernetes.io/name=slurmd", "-o", path).split()


@pytest.mark.full
def test_explain_says_that_the_namespace_is_being_deleted_and_when_its_worker_ends(operator):
    with cluster_of(operator) as slurm:
        job = Ledger(slurm, "--exclusive")
        operator.kubectl("delete", "namespace", slurm.namespace, "--wait=false")
        until(
            lambda: is_terminating(slurm, job.node),
            120,
            lambda: f"its pod to be asked to end: {slurm.pods()}",
        )

        latest = slurm.kubectl("get", "pod", job.node, "-o", "jsonpath={.metadata.deletionTimestamp}")
        for what in ("nodeset/cpu", f"pod/{job.node}"):
            told = explained(slurm, what)
            assert f"Namespace {slurm.namespace}" in told
            assert "has been deleted by somebody, and is being taken apart" in told
            assert (
                f"ends when its jobs are done, and at {latest.replace('T', ' ').rstrip('Z')} UTC at the latest."
                in told
            )
            assert "slurmctld runs" not in told
        assert job.is_running()
        job.wait_ended_by_itself(is_booked=False)


def explained(slurm: Slurm, what: str) -> str:
    """What `kubectl slurm explain` says, in one line."""
    where = ("-n", slurm.namespace, "--kubeconfig", str(slurm.cluster.kubeconfig))
    done = subprocess.run(
        [PROGRAM, "explain", what, *where], text=True, capture_output=True, check=False, timeout=120
    )
    return " ".join((done.stdout + done.stderr).split())
