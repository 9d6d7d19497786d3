"""What users ask of workers with jobs on them: to take no more of them, or to end them after a while."""

import pytest
from job_ledger import Ledger
from operator_rig import until
from test_slurm_workers import cluster_of, operator
from test_worker_deletion import comment
from worker_changes import scale, wait_draining, wait_gone

from slurm_operator.api.shared import names

__all__ = ["operator"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.full]


@pytest.fixture(scope="module")
def slurm(operator):
    with cluster_of(operator, keeps_books=True) as made:
        yield made


def test_a_pod_that_a_user_cordons_takes_no_new_job_until_the_user_lifts_it(slurm):
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()

    slurm.kubectl("annotate", "pod", job.node, f"{names.POD_CORDON}=true")
    wait_draining(slurm, job)
    assert f"PodCordon: Pod {job.node} was cordoned" in slurm.run("scontrol", "show", "node", job.node)
    job.wait_ended_by_itself()
    until(lambda: slurm.states()[job.node] == "drained", 60, lambda: slurm.states())
    # The next passes, for whatever reason they come, leave it so.
    slurm.apply(slurm.nodeset(minReadySeconds=1))
    Ledger(slurm, "--exclusive").wait_ended_by_itself()
    assert slurm.states()[job.node] == "drained"

    slurm.kubectl("annotate", "pod", job.node, f"{names.POD_CORDON}-")
    slurm.wait_idle(2)
    assert slurm.pods() == before


def test_jobs_are_ended_when_the_manifest_says_so_after_its_deadline_and_with_a_word(slurm):
    policy = {"type": "Cancel", "deadline": "25s", "message": "ask ada for more time"}
    slurm.apply(slurm.nodeset(drainPolicy=policy))
    slurm.wait_idle(2)
    stubborn, patient = Ledger(slurm, "--exclusive"), Ledger(slurm, "--exclusive", "--requeue")

    scale(slurm, 0)
    for job, fate in ((stubborn, "cancelled"), (patient, "requeued")):
        wait_draining(slurm, job)
        until(lambda job=job: "ask ada for more time" in comment(job), 60, lambda job=job: comment(job))
        assert f"{job.node} is leaving (ScaleIn); this job is {fate} at" in comment(job)

    until(lambda: stubborn.booked() == ["CANCELLED by 401|0:0"], 120, lambda: f"{stubborn.booked()}")
    until(lambda: slurm.job_state(patient.job) == "PENDING", 60, lambda: slurm.job_state(patient.job))
    wait_gone(slurm)
    slurm.run("scancel", str(patient.job))
