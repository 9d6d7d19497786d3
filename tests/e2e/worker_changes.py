"""What people do to workers while jobs run there. Each case ends with its ledgers whole, or with JobLost.

Every case makes sure that what it does reached a worker on which a job was running. The table in worker_table.py says
how the same case loses a job once a condition of the gate is taken out.
"""

import json
import threading

from job_ledger import Ledger
from operator_rig import Slurm, until

from slurm_local.errors import LocalError

# For a worker that somebody else deletes or evicts without patience.
HASTE = "--grace-period=15"


def scale(slurm: Slurm, replicas: int) -> None:
    slurm.kubectl("scale", "nodeset/cpu", f"--replicas={replicas}")


def wait_draining(slurm: Slurm, job: Ledger) -> None:
    """The fault has arrived: its worker takes nothing new, and its job runs there."""
    until(lambda: slurm.states().get(job.node) == "draining", 120, lambda: f"a drain: {slurm.states()}")
    assert job.seen_by_slurm() == f"RUNNING {job.node}"
    assert job.is_running()


def wait_gone(slurm: Slurm) -> None:
    until(
        lambda: slurm.pods() == {},
        240,
        lambda: f"workers to go: {slurm.pods()} {slurm.states()} {said(slurm)}",
    )


def said(slurm: Slurm) -> dict[str, str]:
    """What the NodeSet says of itself: the reason and the message of each condition."""
    status = json.loads(slurm.kubectl("get", "nodeset", "cpu", "-o", "json")).get("status", {})
    return {one["type"]: f"{one['reason']}: {one.get('message', '')}" for one in status.get("conditions", ())}


def machine_of(slurm: Slurm, pod: str) -> str:
    return slurm.kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")


def is_terminating(slurm: Slurm, pod: str) -> bool:
    return slurm.kubectl("get", "pod", pod, "-o", "jsonpath={.metadata.deletionTimestamp}") != ""


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


def rolling_update(slurm: Slurm, patience: float) -> None:
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()
    idle = next(name for name in before if name != job.node)
    wait_known(slurm)

    slurm.apply(slurm.nodeset(labels={"changed": "yes"}))
    wait_replaced(slurm, {idle: before[idle]})
    wait_draining(slurm, job)
    job.outlives(patience)
    assert slurm.pods()[job.node] == before[job.node]
    job.wait_ended_by_itself()
    wait_replaced(slurm, before)
    slurm.wait_idle(2)


def wait_known(slurm: Slurm) -> None:
    """The operator has seen the job, and so knows which worker is idle."""

    def allocated() -> int:
        return json.loads(slurm.kubectl("get", "nodeset", "cpu", "-o", "json"))["status"]["slurmAllocated"]

    until(lambda: allocated() == 1, 60, lambda: f"one allocated worker: {slurm.states()}")


def wait_replaced(slurm: Slurm, before: dict[str, str]) -> None:
    """There is another pod under each of these names."""
    until(
        lambda: all(slurm.pods().get(name) not in (None, uid) for name, uid in before.items()),
        180,
        lambda: f"{before} to be replaced: {slurm.pods()} {slurm.states()}",
    )


def image_that_is_not_there(slurm: Slurm, patience: float) -> None:
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()
    good = slurm.nodeset()
    bad = slurm.nodeset()
    bad["spec"]["slurmd"] = {**bad["spec"]["slurmd"], "image": "docker.io/local/none:1"}
    wait_known(slurm)

    slurm.apply(bad)
    idle = next(name for name in before if name != job.node)
    wait_replaced(slurm, {idle: before[idle]})
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
    wait_gone(slurm)
    until(
        lambda: "cpu" not in slurm.kubectl("get", "nodesets", "-o", "name"), 120, lambda: "the NodeSet to go"
    )


def foreground_cascade(slurm: Slurm, patience: float) -> None:
    nodeset_deletion(slurm, patience, "--cascade=foreground")


def namespace_deletion(slurm: Slurm, patience: float) -> None:
    """It takes slurmctld along, so from then on only the worker itself knows that a job is there."""
    job = Ledger(slurm, "--exclusive")

    slurm.cluster.kubectl("delete", "namespace", slurm.namespace, "--wait=false")
    until(lambda: not slurm.answers(), 120, lambda: "slurmctld to go")
    until(lambda: is_terminating(slurm, job.node), 120, lambda: f"its pod to be asked to end: {slurm.pods()}")
    job.outlives(max(patience, 45))
    assert job.node in slurm.pods()
    job.wait_ended_by_itself(is_booked=False)  # Nobody is left who could tell slurmdbd.
    gone = ("get", "namespace", slurm.namespace, "--ignore-not-found", "-o", "name")
    until(lambda: slurm.cluster.kubectl(*gone) == "", 240, lambda: f"the namespace to go: {slurm.pods()}")


def kubectl_drain(slurm: Slurm, patience: float) -> None:
    """Of one machine, and of no pods but ours: others share it."""
    slurm.kubectl("label", "pod", "-l", "app.kubernetes.io/name=slurmd", f"machine-of={slurm.namespace}")
    job = Ledger(slurm, "--exclusive")
    machine = machine_of(slurm, job.node)
    only = f"--pod-selector=machine-of={slurm.namespace}"
    flags = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=400s", HASTE, only)
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


def pod_deletion(slurm: Slurm, patience: float) -> None:
    """By hand, and in haste: it is refused, and nothing has changed."""
    job, before = Ledger(slurm, "--exclusive"), slurm.pods()

    refusal = ""
    try:
        slurm.kubectl("delete", "pod", job.node, HASTE, "--wait=false")
    except LocalError as error:
        refusal = str(error)
    job.outlives(patience)
    assert f"worker {job.node} may have running jobs, so it is not deleted" in refusal
    assert slurm.pods() == before
    assert slurm.states()[job.node] == "allocated"
    job.wait_ended_by_itself()
