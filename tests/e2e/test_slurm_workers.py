"""Real workers, real jobs: they come, change and go, and no job is ever lost."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from e2e_pods import make_namespace
from job_ledger import Ledger
from operator_rig import Slurm, install, until

pytestmark = pytest.mark.timeout(600)

Make = Callable[[Slurm], dict]


@pytest.fixture(scope="module")
def operator(cluster, operator_image):
    install(cluster, operator_image)
    return cluster


@contextmanager
def cluster_of(
    operator, *more: Make, workers: Make = Slurm.nodeset, keeps_books: bool = False, **controller
) -> Iterator[Slurm]:
    """A Slurm cluster of two workers, made by the operator from component kinds, and what else it needs."""
    name = f"slurm-{uuid.uuid4().hex[:6]}"
    make_namespace(operator, name)
    made = Slurm(operator, name)
    if keeps_books:
        made.keeps_books, controller["accountingRef"] = True, {"name": "books"}
        made.apply(made.accounting())
    made.apply(made.files(), made.controller(**controller), made.restapi(), workers(made),
               *(one(made) for one in more))  # fmt: skip
    made.wait_idle(2, 240)
    yield made
    for kind in ("nodeset", "loginset", "restapi", "controller", "accounting"):
        operator.kubectl("delete", kind, "--all", "-n", name, "--wait=false")
    operator.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def slurm(operator):
    with cluster_of(operator) as made:
        yield made


def scale(slurm: Slurm, replicas: int) -> None:
    slurm.cluster.kubectl("scale", "nodeset/cpu", f"--replicas={replicas}", "-n", slurm.namespace)


def nodeset(slurm: Slurm) -> dict:
    return json.loads(slurm.cluster.kubectl("get", "nodeset", "cpu", "-n", slurm.namespace, "-o", "json"))


def test_workers_register_and_a_job_runs_on_all_of_them(slurm):
    assert sorted(slurm.run("srun", "-N2", "hostname").split()) == ["cpu-0", "cpu-1"]
    slurm.cluster.kubectl(
        "wait", "--for=condition=Ready", "nodeset/cpu", "-n", slurm.namespace, "--timeout=60s"
    )


def _jobs_told(slurm):
    """The jobs that hold up drains, as the status tells them every other second."""
    return {job for drain in nodeset(slurm)["status"].get("drains", ()) for job in drain["jobs"]}


def test_scale_in_waits_for_the_job_and_takes_the_worker_when_it_has_ended(slurm):
    one, other = Ledger(slurm, "--exclusive"), Ledger(slurm, "--exclusive")
    before = slurm.pods()

    scale(slurm, 0)
    until(
        lambda: list(slurm.states().values()) == ["draining", "draining"],
        what=lambda: f"drains: {slurm.states()}",
    )

    assert one.is_running()  # The scale-in hit both while their jobs ran.
    assert other.is_running()
    assert slurm.pods() == before
    until(
        lambda: _jobs_told(slurm) == {str(one.job), str(other.job)},
        what=lambda: f"the jobs to be told: {_jobs_told(slurm)}",
    )
    one.wait_ended_by_itself()
    other.wait_ended_by_itself()
    until(lambda: slurm.pods() == {}, what=lambda: f"workers to go: {slurm.pods()} {slurm.states()}")
    until(lambda: slurm.states() == {}, what=lambda: f"records to go: {slurm.states()}")

    scale(slurm, 2)
    slurm.wait_idle(2)


def test_a_drain_by_a_human_stands(slurm):
    slurm.run("scontrol", "update", "nodename=cpu-1", "state=drain", "reason=bad disk")
    until(lambda: slurm.states().get("cpu-1") == "drained")

    scale(slurm, 3)
    slurm.wait_idle(2)

    assert slurm.states()["cpu-1"] == "drained"
    assert "bad disk" in slurm.run("scontrol", "show", "node", "cpu-1")
