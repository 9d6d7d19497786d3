"""Workers on the network of their machines: they have its address and its name, and one fits on each."""

import json

import pytest
from job_ledger import Ledger
from operator_rig import Slurm, until
from test_slurm_workers import cluster_of, operator
from worker_changes import machine_of, scale, wait_draining, wait_replaced

__all__ = ["operator"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.full]


def workers(slurm: Slurm) -> dict:
    made = slurm.nodeset(oversubscribeNode=False)
    made["spec"]["template"]["spec"]["hostNetwork"] = True
    return made


@pytest.fixture(scope="module")
def slurm(operator):
    with cluster_of(operator, workers=workers) as made:
        yield made


def status(slurm: Slurm, pod: str) -> dict:
    return json.loads(slurm.kubectl("get", "pod", pod, "-o", "json"))["status"]


def machines(slurm: Slurm) -> list[str]:
    return sorted(machine_of(slurm, name) for name in slurm.pods())


def test_a_job_runs_on_workers_that_are_called_like_their_machines(slurm):
    assert sorted(slurm.states()) == machines(slurm) == ["node-1", "node-2"]
    slurm.kubectl("wait", "--for=condition=Ready", "nodeset/cpu", "--timeout=60s")

    where = slurm.run("srun", "-N2", "sh", "-c", "echo $SLURMD_NODENAME")
    assert sorted(where.split()) == ["node-1", "node-2"]
    assert all(status(slurm, pod)["podIP"] == status(slurm, pod)["hostIP"] for pod in slurm.pods())
    registered = ("get", "nodeset", "cpu", "-o", "jsonpath={.status.registeredReplicas}")
    until(lambda: slurm.kubectl(*registered) == "2", what=lambda: "the operator to know their records")


def test_a_third_worker_finds_no_machine_and_disturbs_nobody(slurm):
    before = slurm.pods()

    scale(slurm, 3)
    until(
        lambda: "cpu-2" in slurm.pods() and status(slurm, "cpu-2").get("conditions"),
        what=lambda: f"a third pod: {slurm.pods()}",
    )
    [placed] = [one for one in status(slurm, "cpu-2")["conditions"] if one["type"] == "PodScheduled"]
    assert placed["reason"] == "Unschedulable"
    scale(slurm, 2)
    until(lambda: slurm.pods() == before, what=lambda: f"the third to go again: {slurm.pods()}")


def test_they_are_replaced_and_scaled_in_when_their_jobs_are_done(slurm):
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()

    slurm.kubectl(
        "patch", "nodeset", "cpu", "--type=merge", "-p",
        json.dumps({"spec": {"template": {"metadata": {"labels": {"changed": "yes"}}}}}),
    )  # fmt: skip
    wait_draining(slurm, job)
    job.outlives(5)
    job.wait_ended_by_itself()
    wait_replaced(slurm, before)
    slurm.wait_idle(2)

    other = Ledger(slurm, "--exclusive", "--nodelist=node-1")
    scale(slurm, 0)
    wait_draining(slurm, other)
    until(lambda: list(slurm.states()) == ["node-1"], what=lambda: f"the idle one to go: {slurm.states()}")
    other.outlives(5)
    other.wait_ended_by_itself()
    until(lambda: slurm.pods() == {}, what=lambda: f"workers to go: {slurm.pods()} {slurm.states()}")
    until(lambda: slurm.states() == {}, what=lambda: f"records to go: {slurm.states()}")
