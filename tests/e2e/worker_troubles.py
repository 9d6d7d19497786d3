"""What goes wrong around workers while jobs run there; as in worker_changes.py."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from job_ledger import Ledger
from operator_rig import Slurm, until
from worker_changes import machine_of, said, scale, wait_draining, wait_gone, wait_replaced

from slurm_local.errors import LocalError
from slurm_local.slurm_cluster import OPERATOR_NAMESPACE
from slurm_operator.api.shared import names

OPERATOR = ("-n", OPERATOR_NAMESPACE, "-l", "app.kubernetes.io/name=slurm-operator")


def suspended_job(slurm: Slurm, patience: float) -> None:
    job = Ledger(slurm, "--exclusive")
    slurm.run("scontrol", "suspend", str(job.job))
    until(lambda: slurm.job_state(job.job) == "SUSPENDED", 60, lambda: slurm.job_state(job.job))
    before = slurm.pods()

    scale(slurm, 0)
    until(lambda: job.node in slurm.drained_by_us(), 120, lambda: f"a drain: {slurm.states()}")
    until(lambda: len(slurm.pods()) == 1, 120, lambda: f"the idle one to go: {slurm.pods()}")
    time.sleep(patience)
    with suppress(LocalError):  # Of a job that is gone; the ledger says so.
        slurm.run("scontrol", "resume", str(job.job))
    job.outlives(3)
    assert slurm.pods()[job.node] == before[job.node]
    job.wait_ended_by_itself()
    wait_gone(slurm)


def preempted_job(slurm: Slurm, patience: float) -> None:
    """One job suspends the other; both are on the worker when it has to go."""
    whole = ("--ntasks=2", "--mem=10", "--nodelist=cpu-0")
    low, high = Ledger(slurm, "--partition=low", *whole), Ledger(slurm, "--partition=high", *whole)
    until(lambda: slurm.job_state(low.job) == "SUSPENDED", 60, lambda: slurm.job_state(low.job))

    scale(slurm, 0)
    until(lambda: "cpu-0" in slurm.drained_by_us(), 120, lambda: f"a drain: {slurm.states()}")
    assert slurm.job_state(low.job) == "SUSPENDED"
    high.outlives(patience)
    high.wait_ended_by_itself()
    until(lambda: slurm.job_state(low.job) == "RUNNING", 60, lambda: slurm.job_state(low.job))
    low.outlives(patience)
    low.wait_ended_by_itself()
    wait_gone(slurm)


def machine_not_ready(slurm: Slurm, patience: float) -> None:
    """The kubelet is gone, the job is not; and an update would like to have its worker."""
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()
    machine = machine_of(slurm, job.node)
    ready = ("get", "node", machine, "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")

    slurm.cluster.parts.stop(f"kubelet-{machine}")
    try:
        until(lambda: slurm.cluster.kubectl(*ready) == "Unknown", 180, lambda: f"{machine} to be NotReady")
        assert job.is_running()
        slurm.apply(slurm.nodeset(labels={"changed": "yes"}))
        job.outlives(
            max(patience, 45)
        )  # Meanwhile nobody can be asked who is on that machine, not even Slurm.
        assert slurm.pods()[job.node] == before[job.node], "it is silent, not gone"
    finally:
        slurm.cluster.parts.restart(f"kubelet-{machine}")
    until(lambda: slurm.cluster.kubectl(*ready) == "True", 180, lambda: f"{machine} to be Ready")
    wait_draining(slurm, job)
    job.outlives(patience)
    job.wait_ended_by_itself()
    wait_replaced(slurm, before)
    slurm.wait_idle(2)


@contextmanager
def unreplaced(slurm: Slurm, pod: str) -> Iterator[None]:
    """Who deletes it meanwhile ends it, and no other comes in its place."""
    finalizers = ("patch", "pod", pod, "--type=merge", "-p")
    slurm.kubectl(*finalizers, '{"metadata": {"finalizers": ["e2e.slurm-operator/unreplaced"]}}')
    try:
        yield
    finally:
        slurm.kubectl(*finalizers, '{"metadata": {"finalizers": null}}')


def slurmctld_restart(slurm: Slurm, patience: float) -> None:
    """It is away for long enough that nobody can be asked, however fast its pod would be back."""
    job, uid = Ledger(slurm, "--exclusive"), ("-o", "jsonpath={.metadata.uid}")
    before = slurm.kubectl("get", "pod", "slurm-controller-0", *uid)

    with unreplaced(slurm, "slurm-controller-0"):
        slurm.kubectl("delete", "pod", "slurm-controller-0", "--wait=false")
        scale(slurm, 0)
        job.outlives(max(patience, 10))
    until(slurm.answers, 180, lambda: "another slurmctld")
    assert slurm.kubectl("get", "pod", "slurm-controller-0", *uid) != before
    wait_draining(slurm, job)
    job.outlives(patience)
    job.wait_ended_by_itself()
    wait_gone(slurm)


def lost_state(slurm: Slurm, patience: float) -> None:
    """slurmctld starts with nothing: it knows neither the worker nor the job that runs there."""
    job = Ledger(slurm, "--exclusive")

    slurm.run("sh", "-c", "rm -rf /var/spool/slurmctld/*; kill -9 $(pidof slurmctld)")
    until(lambda: job.node not in slurm.states() and slurm.answers(), 120, lambda: f"{slurm.states()}")
    assert job.is_running(), "Slurm has forgotten it; it runs on"
    scale(slurm, 0)
    job.outlives(max(patience, 45))
    assert job.node in slurm.pods()
    job.wait_ended_by_itself(is_booked=False)  # A job that slurmctld forgot has no end in the books.
    wait_gone(slurm)


@contextmanager
def hung(slurm: Slurm) -> Iterator[None]:
    """slurmrestd takes connections and says nothing."""
    where = ("exec", "deploy/slurm-restapi", "-c", "slurmrestd", "--", "sh", "-c")
    slurm.kubectl(*where, "kill -STOP $(pidof slurmrestd)")
    try:
        yield
    finally:
        try:
            slurm.kubectl(*where, "kill -CONT $(pidof slurmrestd)")
        except LocalError:
            slurm.kubectl("delete", "pod", "-l", "app.kubernetes.io/name=slurmrestd", "--wait=false")


@contextmanager
def away(slurm: Slurm) -> Iterator[None]:
    """There is no slurmrestd."""
    slurm.apply({**(gone := slurm.restapi()), "spec": {**gone["spec"], "replicas": 0}})
    wait_no_slurmrestd(slurm)
    yield
    slurm.apply({**gone, "spec": {**gone["spec"], "replicas": 1}})


@contextmanager
def deleted(slurm: Slurm) -> Iterator[None]:
    """There is no RestApi, by force: it would be kept while a NodeSet needs it."""
    slurm.kubectl("annotate", "restapi", "slurm", f"{names.FORCE_DELETION}=true")
    slurm.kubectl("delete", "restapi", "slurm", "--timeout=120s")
    wait_no_slurmrestd(slurm)
    yield
    slurm.apply(slurm.restapi())


def wait_no_slurmrestd(slurm: Slurm) -> None:
    pods = ("get", "pods", "-l", "app.kubernetes.io/name=slurmrestd", "-o", "name")
    until(lambda: slurm.kubectl(*pods) == "", 120, lambda: "slurmrestd to go")


def slurmrestd_hangs(slurm: Slurm, patience: float, trouble=hung) -> None:
    """Somebody wants no workers any more, and nobody can say what runs on them."""
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()

    with trouble(slurm):
        scale(slurm, 0)
        job.outlives(max(patience, 15))
        assert slurm.pods() == before, "not even the idle one"
        until(lambda: "SlurmUnreachable" in said(slurm).get("Progressing", ""), 60, lambda: said(slurm))
        assert job.is_running()
    wait_draining(slurm, job)
    job.wait_ended_by_itself()
    wait_gone(slurm)


def slurmrestd_away(slurm: Slurm, patience: float) -> None:
    slurmrestd_hangs(slurm, patience, away)


def restapi_deletion(slurm: Slurm, patience: float) -> None:
    slurmrestd_hangs(slurm, patience, deleted)


def operator_killed(slurm: Slurm, patience: float) -> None:
    """Again and again, while workers come and go; each time without a chance to say good-bye."""
    job, dice = Ledger(slurm, "--exclusive", "--nodelist=cpu-0"), random.Random(7)

    for replicas in (3, 0, 2, 0):
        scale(slurm, replicas)
        time.sleep(dice.uniform(0, 2))
        killed = slurm.cluster.kubectl("delete", "pod", *OPERATOR, "--force", "--grace-period=0")
        assert "deleted" in killed
        job.outlives(3)
    wait_draining(slurm, job)
    job.outlives(patience)
    job.wait_ended_by_itself()
    wait_gone(slurm)
