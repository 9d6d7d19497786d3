"""What happens to workers while their jobs run. Each case ends with its ledgers, or with JobLost.

Every case makes sure that what it does reached a worker on which a job was running. The tests play them with the
operator as it is, and again with one that has a hole in its gate: then a ledger must break.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from job_ledger import Ledger
from operator_rig import Slurm, until

from slurm_operator.api import names
from slurm_operator.local.errors import LocalError
from slurm_operator.local.operated import OPERATOR_NAMESPACE

Case = Callable[[Slurm, float], None]  # With how many seconds to look on after the fault.


def scale(slurm: Slurm, replicas: int) -> None:
    slurm.kubectl("scale", "nodeset/cpu", f"--replicas={replicas}")


def wait_draining(slurm: Slurm, ledger: Ledger) -> None:
    """The fault has arrived: its worker takes nothing new, and its job is there."""
    until(lambda: slurm.states().get(ledger.node) == "draining", 120, lambda: f"a drain: {slurm.states()}")
    assert ledger.job in [int(job) for job in slurm.run("squeue", "--noheader", "--format=%A").split()]


def four_one_four(slurm: Slurm, patience: float) -> None:
    scale(slurm, 4)
    slurm.wait_idle(4)
    jobs = [Ledger(slurm, "--exclusive", f"--nodelist=cpu-{number}") for number in (1, 2, 3)]

    scale(slurm, 1)
    until(lambda: sum(state == "draining" for state in slurm.states().values()) == 2, 120,
          lambda: f"two drains: {slurm.states()}")  # fmt: skip
    for job in jobs:
        job.outlives(patience)
    for job in jobs:
        job.wait_ended_by_itself()

    until(lambda: len(slurm.pods()) == 1, 120, lambda: f"three to go: {slurm.pods()} {slurm.states()}")
    scale(slurm, 4)
    slurm.wait_idle(4)


def image_that_is_not_there(slurm: Slurm, patience: float) -> None:
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()
    good = slurm.nodeset()
    bad = slurm.nodeset()
    bad["spec"]["slurmd"] = {**bad["spec"]["slurmd"], "image": "docker.io/local/none:1"}

    slurm.apply(bad)
    idle = next(name for name in before if name != job.node)
    until(
        lambda: slurm.pods().get(idle) not in (None, before[idle]),
        120,
        lambda: f"{idle} replaced: {slurm.pods()}",
    )
    job.outlives(patience)
    assert slurm.pods()[job.node] == before[job.node]
    assert slurm.states()[job.node] == "allocated", "one is away, and that is all that may be"
    good["spec"]["template"]["metadata"]["labels"] = {"changed": "yes"}
    slurm.apply(good)
    wait_draining(slurm, job)
    job.outlives(patience)
    job.wait_ended_by_itself()
    slurm.wait_idle(2)


def mode_switch(slurm: Slurm, patience: float) -> None:
    first = Ledger(slurm, "--exclusive", "--nodelist=cpu-0")

    slurm.apply(slurm.nodeset(scalingMode="DaemonSet"))
    wait_draining(slurm, first)
    until(lambda: "cpu-1" not in slurm.pods(), 120, lambda: f"the idle one to go: {slurm.pods()}")
    first.outlives(patience)
    slurm.wait_idle(2)
    second = Ledger(slurm, "--exclusive")
    assert not second.node.startswith("cpu-")

    slurm.apply(slurm.nodeset(scalingMode="StatefulSet"))
    wait_draining(slurm, second)
    for job in (first, second):
        job.outlives(patience)
    for job in (first, second):
        job.wait_ended_by_itself()
    until(lambda: sorted(slurm.pods()) == ["cpu-0", "cpu-1"], 120, lambda: f"daemons to go: {slurm.pods()}")
    slurm.wait_idle(2)


def nodeset_deletion(slurm: Slurm, patience: float, *flags: str) -> None:
    job = Ledger(slurm, "--exclusive")

    slurm.kubectl("delete", "nodeset", "cpu", "--wait=false", *flags)
    wait_draining(slurm, job)
    job.outlives(patience)
    assert job.node in slurm.pods()
    job.wait_ended_by_itself()
    until(lambda: slurm.pods() == {}, 120, lambda: f"workers to go: {slurm.pods()}")
    until(
        lambda: "cpu" not in slurm.kubectl("get", "nodesets", "-o", "name"), 120, lambda: "the NodeSet to go"
    )


def foreground_cascade(slurm: Slurm, patience: float) -> None:
    nodeset_deletion(slurm, patience, "--cascade=foreground")


def kubectl_drain(slurm: Slurm, patience: float) -> None:
    """Of one machine, and of no pods but ours: others share it."""
    slurm.kubectl("label", "pod", "-l", "app.kubernetes.io/name=slurmd", f"machine-of={slurm.namespace}")
    job = Ledger(slurm, "--exclusive")
    machine = slurm.kubectl("get", "pod", job.node, "-o", "jsonpath={.spec.nodeName}")
    only = f"--pod-selector=machine-of={slurm.namespace}"
    flags = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=400s", only)
    done: list[str] = []
    drain = threading.Thread(
        target=lambda: done.append(slurm.cluster.kubectl("drain", machine, *flags, timeout_s=420))
    )
    try:
        drain.start()
        wait_draining(slurm, job)
        job.outlives(patience)
        assert drain.is_alive(), "kubectl waits for the job"
        job.wait_ended_by_itself()
        drain.join(200)
        assert done, "kubectl drain succeeds when the job is done"
    finally:
        slurm.cluster.kubectl("uncordon", machine)
        drain.join(200)
    slurm.wait_idle(2)


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
    until(lambda: slurm.pods() == {}, 120, lambda: f"workers to go: {slurm.pods()}")


def preempted_job(slurm: Slurm, patience: float) -> None:
    """One job suspends the other; both are on the worker when it has to go."""
    whole = ("--ntasks=2", "--mem=10", "--nodelist=cpu-0")
    low, high = Ledger(slurm, "--partition=low", *whole), Ledger(slurm, "--partition=high", *whole)
    until(lambda: slurm.job_state(low.job) == "SUSPENDED", 60, lambda: slurm.job_state(low.job))

    scale(slurm, 0)
    until(lambda: "cpu-0" in slurm.drained_by_us(), 120, lambda: f"a drain: {slurm.states()}")
    high.outlives(patience)
    high.wait_ended_by_itself()
    until(lambda: slurm.job_state(low.job) == "RUNNING", 60, lambda: slurm.job_state(low.job))
    low.outlives(patience)
    low.wait_ended_by_itself()
    until(lambda: slurm.pods() == {}, 120, lambda: f"workers to go: {slurm.pods()}")


def machine_not_ready(slurm: Slurm, patience: float) -> None:
    """The kubelet is gone, the job is not; and an update would like to have its worker."""
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()
    machine = slurm.kubectl("get", "pod", job.node, "-o", "jsonpath={.spec.nodeName}")
    ready = ("get", "node", machine, "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")

    slurm.cluster.parts.stop(f"kubelet-{machine}")
    try:
        until(lambda: slurm.cluster.kubectl(*ready) == "Unknown", 180, lambda: f"{machine} to be NotReady")
        slurm.apply(slurm.nodeset(labels={"changed": "yes"}))
        job.outlives(max(patience, 45))
        assert slurm.pods()[job.node] == before[job.node], "it is silent, not gone"
    finally:
        slurm.cluster.parts.restart(f"kubelet-{machine}")
    until(lambda: slurm.cluster.kubectl(*ready) == "True", 180, lambda: f"{machine} to be Ready")
    wait_draining(slurm, job)
    job.outlives(patience)
    job.wait_ended_by_itself()
    until(
        lambda: not set(slurm.pods().values()) & set(before.values()),
        180,
        lambda: f"both new: {slurm.pods()}",
    )
    slurm.wait_idle(2)


def slurmctld_restart(slurm: Slurm, patience: float) -> None:
    job = Ledger(slurm, "--exclusive")

    slurm.kubectl("delete", "pod", "slurm-controller-0", "--wait=false")
    scale(slurm, 0)
    job.outlives(max(patience, 10))
    until(lambda: slurm.states().get(job.node) == "draining", 180, lambda: f"a drain: {slurm.states()}")
    job.outlives(patience)
    job.wait_ended_by_itself()
    until(lambda: slurm.pods() == {}, 180, lambda: f"workers to go: {slurm.pods()}")


def lost_state(slurm: Slurm, patience: float) -> None:
    """slurmctld starts with nothing: it knows neither the worker nor the job that runs there."""
    job = Ledger(slurm, "--exclusive")

    slurm.run("sh", "-c", "rm -rf /var/spool/slurmctld/*; kill -9 $(pidof slurmctld)")
    until(lambda: job.node not in slurm.states() and slurm.answers(), 120, lambda: f"{slurm.states()}")
    assert job.is_running(), "Slurm has forgotten it; it runs on"
    scale(slurm, 0)
    job.outlives(max(patience, 45))
    assert job.node in slurm.pods()
    job.wait_ended_by_itself()
    until(lambda: slurm.pods() == {}, 240, lambda: f"workers to go: {slurm.pods()} {slurm.states()}")


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


def slurmrestd_hangs(slurm: Slurm, patience: float) -> None:
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()

    with hung(slurm):
        scale(slurm, 0)
        job.outlives(max(patience, 15))
        assert slurm.pods() == before, "nobody can say what runs there, not even on the idle one"
    wait_draining(slurm, job)
    job.wait_ended_by_itself()
    until(lambda: slurm.pods() == {}, 180, lambda: f"workers to go: {slurm.pods()}")


def restapi_deletion(slurm: Slurm, patience: float) -> None:
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()

    slurm.kubectl("annotate", "restapi", "slurm", f"{names.FORCE_DELETION}=true")
    slurm.kubectl("delete", "restapi", "slurm", "--timeout=120s")
    until(
        lambda: slurm.kubectl("get", "pods", "-l", "app.kubernetes.io/name=slurmrestd", "-o", "name") == "",
        120,
    )
    scale(slurm, 0)
    job.outlives(max(patience, 15))
    assert slurm.pods() == before
    slurm.apply(slurm.restapi())
    wait_draining(slurm, job)
    job.wait_ended_by_itself()
    until(lambda: slurm.pods() == {}, 180, lambda: f"workers to go: {slurm.pods()}")


def operator_killed(slurm: Slurm, patience: float) -> None:
    """Again and again, while workers come and go; each time without a chance to say good-bye."""
    job, dice = Ledger(slurm, "--exclusive", "--nodelist=cpu-0"), random.Random(7)

    for replicas in (3, 0, 2, 0):
        scale(slurm, replicas)
        time.sleep(dice.uniform(0, 2))
        slurm.cluster.kubectl(
            "delete", "pod", "-n", OPERATOR_NAMESPACE, "-l", "app.kubernetes.io/name=slurm-operator",
            "--force", "--grace-period=0",
        )  # fmt: skip
        job.outlives(3)
    wait_draining(slurm, job)
    job.outlives(patience)
    job.wait_ended_by_itself()
    until(lambda: slurm.pods() == {}, 180, lambda: f"workers to go: {slurm.pods()}")
