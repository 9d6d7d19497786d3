"""Things that go wrong: `explain` names the true cause and the remedy, and all is well after the repair."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.conditions import READY
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.token import Token
from slurm_operator.insight.collect import Unseen
from slurm_operator.insight.drain.decide import undraining
from slurm_operator.insight.explain.chain import Case, Explanation, NotThere
from slurm_operator.insight.explain.lookup import explain
from slurm_operator.insight.forecast.simulate import Play
from slurm_operator.insight.logs import crashes
from slurm_operator.insight.slurm.unusable import all_unusable
from slurm_operator.insight.text.explain_text import text
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.manifests.events import Event, Regarding
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ContainerState, KubeNode, Pod, PodCondition
from slurm_operator.manifests.platform import Namespace
from slurm_operator.slurm.accounting import AccountedJob
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.states import JobState
from testing.pictures import (
    NOON,
    NS,
    RECONCILERS,
    SLURM,
    cluster,
    empty,
    explanation,
    job,
    one_of,
    pod,
    retold,
    slurm,
    state,
    unready,
    unscheduled,
    waiting,
    working,
)

GOLDEN = Path(__file__).parent / "golden" / "explain"
CHECK = "check-database"


@dataclass(frozen=True)
class Fault:
    """What to ask about, what breaks, and words that the true cause and the remedy must have."""

    what: str
    breaks: Callable[[Picture], None]
    cause: str
    remedy: str
    refused: tuple[str, str, str] | None = None


def missing_secret(made: Picture) -> None:
    made.secrets[ObjectKey(NS, "db")] = None


def wrong_key(made: Picture) -> None:
    made.secrets[ObjectKey(NS, "db")] = wire.replace(
        made.secrets[ObjectKey(NS, "db")], digests={"pass": "d1"}
    )


def bad_image(made: Picture) -> None:
    message = 'Back-off pulling image "slurmd:typo": not found'
    waiting(made, "demo-cpu-1", "slurmd", "ImagePullBackOff", message)


def no_node_fits(made: Picture) -> None:
    unscheduled(made, "demo-cpu-1", "0/3 nodes are available: 3 Insufficient cpu.")


def volume_pending(made: Picture) -> None:
    unscheduled(
        made,
        "demo-controller-0",
        "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
    )
    meta = Meta(name="statesave-demo-controller-0", namespace=NS, uid="claim")
    body = {"spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}}
    made.put_child(kinds.PERSISTENT_VOLUME_CLAIM, Child(metadata=meta, body=body))


def database_says(error: str) -> Callable[[Picture], None]:
    def breaks(made: Picture) -> None:
        waiting(made, "demo-accounting-0", CHECK, "CrashLoopBackOff", last=error, init=True)

    return breaks


def slurmctld_crash(made: Picture) -> None:
    last = "fatal: Can not recover assoc_usage state, incompatible version"
    waiting(made, "demo-controller-0", "slurmctld", "CrashLoopBackOff", last=last)


def config_refused(made: Picture) -> None:
    """As the Cluster passes it on."""
    _spec_of_cluster(made, extra_conf="SchedulerTyp=sched/backfill\n")
    controller = made.get(Controller, NS, "demo")
    lines = f"{controller.spec.extra_conf}SchedulerTyp=sched/backfill\n"
    made.put(wire.replace(controller, spec=wire.replace(controller.spec, extra_conf=lines)))


def _spec_of_cluster(made: Picture, **fields: object) -> None:
    demo = made.get(Cluster, NS, "demo")
    made.put(wire.replace(demo, spec=wire.replace(demo.spec, **fields)))


def does_not_register(made: Picture) -> None:
    slurm(made, nodes={"demo-cpu-1": None})
    made.now += timedelta(minutes=5)
    _fresh(made)


def gres_mismatch(made: Picture) -> None:
    nodeset = made.get(NodeSet, NS, "demo-cpu")
    made.put(wire.replace(nodeset, spec=wire.replace(nodeset.spec, extra_conf="Gres=gpu:4")))
    slurm(made, nodes={"demo-cpu-0": {"gres": "gpu:4"}, "demo-cpu-1": {"gres": "gpu:3"}})


def drained_by_human(made: Picture) -> None:
    given = {
        "state": state("IDLE", "DRAIN"),
        "reason": "grace: fan is loud",
        "reason_set_by": "grace",
        "reason_changed_at": NOON,
    }
    slurm(made, nodes={"demo-cpu-1": given})


def held_job(made: Picture) -> None:
    slurm(made, jobs=(job(7, words=("PENDING",), state_reason="JobHeldUser", is_held=True),))


def impossible_job(made: Picture) -> None:
    slurm(made, jobs=(job(7, words=("PENDING",), state_reason="BadConstraints", cpus=64, node_count=1),))


def dns_broken(made: Picture) -> None:
    last = 'error: resolve_ctls_from_dns_srv: res_nsearch error: Unable to resolve "demo-controller": Temporary failure in name resolution'
    waiting(made, "demo-cpu-1", "slurmd", "CrashLoopBackOff", last=last)


def rbac_missing(made: Picture) -> None:
    made.drop(Pod, ObjectKey(NS, "demo-cpu-1"))


def expired_token(made: Picture) -> None:
    spec = {"username": "ada", "controllerRef": {"name": "demo"}, "refresh": False, "lifetime": "1h"}
    meta = {"name": "ada", "namespace": NS, "uid": "token", "generation": 1}
    token = codec.read(Token, {"metadata": meta, "spec": spec})
    made.put(token)
    notes = {
        "token.slinky.slurm.net/issued-at": "2026-01-01T10:00:00+00:00", "token.slinky.slurm.net/expires-at": "2026-01-01T11:00:00+00:00",
        "token.slinky.slurm.net/username": "ada", "token.slinky.slurm.net/key-digest": _signing_digest(made),
    }  # fmt: skip
    owner = {"apiVersion": "v1", "kind": "Token", "name": "ada", "uid": "token", "controller": True}
    meta = codec.read(
        Meta, {"name": token.secret_name, "namespace": NS, "annotations": notes, "ownerReferences": [owner]}
    )
    secret = made.secrets[ObjectKey(NS, "db")]
    made.secrets[ObjectKey(NS, token.secret_name)] = wire.replace(
        secret, metadata=meta, digests={token.secret_key: "t"}
    )


def full_queue(made: Picture) -> None:
    busy = {name: {"state": state("ALLOCATED"), "allocated_cpus": 4} for name in ("demo-cpu-0", "demo-cpu-1")}
    running = (job(1, "demo-cpu-0"), job(2, "demo-cpu-1", minutes=120))
    slurm(
        made,
        nodes=busy,
        jobs=(
            *running,
            job(3, words=("PENDING",), state_reason="Resources"),
            job(7, words=("PENDING",), state_reason="Priority"),
        ),
    )


def refused_pods(note: str) -> Callable[[Picture], None]:
    def breaks(made: Picture) -> None:
        workload = made.child(kinds.STATEFUL_SET, NS, "demo-controller")
        counts = {**workload.body["status"], "replicas": 0, "readyReplicas": 0, "availableReplicas": 0}
        made.put_child(kinds.STATEFUL_SET, wire.replace(workload, body={**workload.body, "status": counts}))
        made.drop(Pod, ObjectKey(NS, "demo-controller-0"))
        about = Regarding(kind="StatefulSet", name="demo-controller", uid=workload.metadata.uid)
        said = f"create Pod demo-controller-0 in StatefulSet demo-controller failed error: {note}"
        made.put(
            Event(
                metadata=Meta(name="e1", namespace=NS),
                regarding=about,
                reason="FailedCreate",
                note=said,
                type="Warning",
                event_time=NOON,
            )
        )

    return breaks


def eviction_blocked(made: Picture) -> None:
    machine = made.get(KubeNode, "", pod(made, "demo-cpu-1").spec.node_name)
    made.put(wire.replace(machine, spec=wire.replace(machine.spec, unschedulable=True)))
    reason = f"slurm-operator: NodeCordon: Node {machine.metadata.name} was cordoned (pod {pod(made, 'demo-cpu-1').metadata.uid})"
    given = {"state": state("ALLOCATED", "DRAIN"), "reason": reason, "reason_changed_at": NOON}
    slurm(made, nodes={"demo-cpu-1": given}, jobs=(job(7, "demo-cpu-1"),))


def stuck_completing(made: Picture) -> None:
    made.now += timedelta(minutes=30)
    _fresh(made)
    ended = job(7, "demo-cpu-1", words=("COMPLETED", "COMPLETING"), end_time=NOON)
    slurm(made, nodes={"demo-cpu-1": {"state": state("IDLE", "COMPLETING")}}, jobs=(ended,))


def node_lost(made: Picture) -> None:
    machine = made.get(KubeNode, "", pod(made, "demo-cpu-1").spec.node_name)
    away = PodCondition(
        type="Ready",
        status="Unknown",
        reason="NodeStatusUnknown",
        message="Kubelet stopped posting node status.",
    )
    made.put(wire.replace(machine, status=wire.replace(machine.status, conditions=(away,))))
    unready(made, "demo-cpu-1")
    slurm(made, nodes={"demo-cpu-1": {"state": state("DOWN", "NOT_RESPONDING"), "reason": "Not responding"}})


def slurmd_hangs(made: Picture) -> None:
    """It was ready, and has not answered its kubelet for two minutes."""
    made.now += timedelta(minutes=10)
    statuses = tuple(
        wire.replace(one, ready=False) for one in pod(made, "demo-cpu-1").status.container_statuses
    )
    since = PodCondition(type="Ready", status="False", last_transition_time=made.now - timedelta(minutes=2))
    unready(made, "demo-cpu-1", container_statuses=statuses, conditions=(since,))
    slurm(made)


def slurmd_hangs_drained(made: Picture) -> None:
    slurmd_hangs(made)
    reason = "slurm-operator: Unresponsive: slurmd is not ready although its container runs"
    slurm(made, nodes={"demo-cpu-1": {"state": state("IDLE", "DRAIN"), "reason": reason}})


def version_skew(made: Picture) -> None:
    slurm(made, nodes={"demo-cpu-1": {"version": "26.11.0"}})


def name_clash(made: Picture) -> None:
    login = next(
        thing
        for type_, things in made.records.items()
        if type_.__name__ == "LoginSet"
        for thing in things.values()
    )
    made.put(wire.replace(login, metadata=wire.replace(login.metadata, owner_references=())))


def _fresh(made: Picture) -> None:
    made.slurms[SLURM] = wire.replace(made.slurms[SLURM], nodes_asked_at=made.now, jobs_asked_at=made.now)


def _signing_digest(made: Picture) -> str:
    return next(iter(made.secrets[ObjectKey(NS, "demo-auth-jwt")].digests.values()))


QUOTA = 'pods "demo-controller-0" is forbidden: exceeded quota: small, requested: cpu=1, used: cpu=4, limited: cpu=4'
SECURITY = 'pods "demo-controller-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
NO_RIGHT = 'create Pod ns/demo-cpu-1: pods is forbidden: User "system:serviceaccount:slurm-operator:manager" cannot create resource "pods" in API group "" in the namespace "ns"'

FAULTS: dict[str, Fault] = {
    "missing-secret": Fault("cluster/demo", missing_secret, "Secret 'db'", "Create the Secret"),
    "wrong-key": Fault("cluster/demo", wrong_key, "has no entry 'password' (it has: pass)", "Add the entry"),
    "bad-image": Fault("nodeset/demo-cpu", bad_image, "slurmd:typo", "Correct the image"),
    "no-node-fits": Fault("nodeset/demo-cpu", no_node_fits, "Insufficient cpu", "Ask for less"),
    "volume-pending": Fault("cluster/demo", volume_pending, "no StorageClass 'fast'", "Create StorageClass"),
    "database-down": Fault("cluster/demo", database_says("ERROR 2003: no answer"), "does not answer", "Start the database"),
    "wrong-grant": Fault("accounting/demo", database_says("ERROR 1044 (42000): Access denied for user 'slurm'@'%' to database"), "GRANT ALL", "Run the GRANT"),
    "slurmctld-crash": Fault("cluster/demo", slurmctld_crash, "Can not recover assoc_usage state", "log of slurmctld says why"),
    "config-refused": Fault("cluster/demo", config_refused, "line 1 of spec.extraConf of Cluster demo", "edit cluster demo"),
    "worker-does-not-register": Fault("nodeset/demo-cpu", does_not_register, "slurmctld does not know it", "log of slurmd"),
    "gres-mismatch": Fault("nodeset/demo-cpu", gres_mismatch, "GRES gpu: 4 by extraConf, 3 in Slurm", "Make both say the same"),
    "drained-by-a-human": Fault("node/demo-cpu-1", drained_by_human, "drained by grace", "Ask grace"),
    "held-job": Fault("job/7", held_job, "its owner holds it", "scontrol release 7"),
    "impossible-job": Fault("job/7", impossible_job, "no node of the cluster has what it asks for", "Ask for less"),
    "dns-broken": Fault("nodeset/demo-cpu", dns_broken, "DNS", "cluster's DNS"),
    "rbac-missing": Fault("nodeset/demo-cpu", rbac_missing, "cannot create resource", "grant its ServiceAccount", ("NodeSet", "demo-cpu", NO_RIGHT)),
    "expired-token": Fault("token/ada", expired_token, "", "spec.refresh"),
    "full-queue": Fault("job/7", full_queue, "jobs with a higher priority", "in its turn"),
    "quota": Fault("cluster/demo", refused_pods(QUOTA), "exceeded quota", "ResourceQuota"),
    "pod-security": Fault("cluster/demo", refused_pods(SECURITY), "violates PodSecurity", "isolation: process"),
    "eviction-blocked": Fault("node/demo-cpu-1", eviction_blocked, "cannot be evicted meanwhile", "uncordon"),
    "stuck-completing": Fault("job/7", stuck_completing, "still has processes", "See which process"),
    "node-lost": Fault("nodeset/demo-cpu", node_lost, "Kubelet stopped posting", "Bring the node back"),
    "version-skew": Fault("nodeset/demo-cpu", version_skew, "newer than slurmctld 26.05.5", "Update the Controller first"),
    "name-clash": Fault("cluster/demo", name_clash, "exists already", "choose another name"),
}  # fmt: skip

# One trouble, asked about in three ways.
HANGS = {
    "slurmd-hangs": Fault("nodeset/demo-cpu", slurmd_hangs, "runs and has not been ready since", "See what slurmd waits for"),
    "slurmd-hangs-pod": Fault("pod/demo-cpu-1", slurmd_hangs, "Nothing kills it", "nodeset.slinky.slurm.net/replace=true"),
    "slurmd-hangs-node": Fault("node/demo-cpu-1", slurmd_hangs_drained, "drained by the operator: slurmd is not ready", "lifted when it does"),
}  # fmt: skip


def namespace_goes(made: Picture) -> None:
    """Somebody deleted it: slurmctld is gone, one worker waits for its job and one is still protected."""
    made.put(Namespace(metadata=Meta(name=NS, deletion_timestamp=NOON)))
    made.slurms[SLURM] = Unreachable(since=NOON, why="connection refused")
    for type_ in (Cluster, Controller, NodeSet):
        for one in list(made.all(type_)):
            made.put(wire.replace(one, metadata=wire.replace(one.metadata, deletion_timestamp=NOON)))
    leaving, kept = pod(made, "demo-cpu-0"), pod(made, "demo-cpu-1")
    labels = {key: value for key, value in leaving.metadata.labels.items() if key != names.LABEL_POD_PROTECT}
    meta = wire.replace(leaving.metadata, deletion_timestamp=NOON + timedelta(hours=1), labels=labels)
    made.put(wire.replace(leaving, metadata=meta))
    protected = {**kept.metadata.labels, names.LABEL_POD_PROTECT: "true"}
    made.put(wire.replace(kept, metadata=wire.replace(kept.metadata, labels=protected)))


# Nobody can ask slurmctld any more, and that is no trouble of slurmctld's.
ENDING = {
    "namespace-goes": Fault("nodeset/demo-cpu", namespace_goes, "has been terminating since", "Save the results of running jobs"),
    "namespace-goes-cluster": Fault("cluster/demo", namespace_goes, "has been terminating since", "Save the results of running jobs"),
    "namespace-goes-pod": Fault("pod/demo-cpu-0", namespace_goes, "ends when its jobs are done, and at 2026-01-01 13:00:00 UTC at the latest", "Save the results"),
    "namespace-goes-kept": Fault("pod/demo-cpu-1", namespace_goes, "is kept as long as a job may run there", "Save the results"),
}  # fmt: skip


def all_drained(**given: object) -> Callable[[Picture], None]:
    def breaks(made: Picture) -> None:
        both = {"state": state("IDLE", "DRAIN"), "reason_changed_at": NOON, **given}
        slurm(made, nodes={"demo-cpu-0": both, "demo-cpu-1": both})

    return breaks


def one_down_one_drained(made: Picture) -> None:
    slurm(
        made,
        nodes={
            "demo-cpu-0": {"state": state("DOWN"), "reason": "power supply", "reason_set_by": "root"},
            "demo-cpu-1": {"state": state("IDLE", "DRAIN"), "reason": "bad NIC", "reason_set_by": "root"},
        },
    )


def all_cordoned(made: Picture) -> None:
    for name in ("demo-cpu-0", "demo-cpu-1"):
        machine = made.get(KubeNode, "", pod(made, name).spec.node_name)
        made.put(wire.replace(machine, spec=wire.replace(machine.spec, unschedulable=True)))
        where = f"Node {machine.metadata.name} was cordoned (pods made until 2026-01-02T00:00:00Z)"
        given = {"state": state("IDLE", "DRAIN"), "reason": f"slurm-operator: NodeCordon: {where}"}
        slurm(made, nodes={name: given})


# Everything is ready, and no job could start.
WITHOUT_NODES = {
    "drained-cluster": Fault("cluster/demo", all_drained(reason="bad NIC", reason_set_by="root"), "is ready, but 2 of 2 nodes are drained by root: bad NIC", "undrain demo-cpu-[0-1] --force"),
    "drained-nodeset": Fault("nodeset/demo-cpu", all_drained(reason="grace: bad NIC", reason_set_by="slurm"), "is ready, but 2 of 2 nodes are drained by grace: bad NIC", "Ask grace"),
    "cordoned-nodeset": Fault("nodeset/demo-cpu", all_cordoned, "take no new jobs: 1 drained by the operator: Node node-", "kubectl uncordon node-"),
    "down-and-drained": Fault("cluster/demo", one_down_one_drained, "root called it DOWN with the reason 'power supply'", "scontrol update nodename=demo-cpu-0 state=resume"),
}  # fmt: skip


def waits(job_id: int, reason: str, requested: str = "", **fields: object) -> JobDetail:
    waiting_job = job(job_id, words=("PENDING",), state_reason=reason, submit_time=NOON, **fields)
    return JobDetail(job=waiting_job, requested=requested)


def lacks_memory(made: Picture) -> None:
    """CPUs are free everywhere, memory is not."""
    used = {
        "real_memory_mb": 16384,
        "allocated_memory_mb": 15360,
        "allocated_cpus": 1,
        "state": state("MIXED"),
    }
    slurm(made, nodes={"demo-cpu-0": used, "demo-cpu-1": {**used, "allocated_memory_mb": 12288}})


def no_workers(made: Picture) -> None:
    slurm(made, nodes={"demo-cpu-0": None, "demo-cpu-1": None})
    _workers(made, 0)


def _workers(made: Picture, count: int) -> None:
    nodeset = made.get(NodeSet, NS, "demo-cpu")
    made.put(wire.replace(nodeset, spec=wire.replace(nodeset.spec, replicas=count)))
    for one in list(made.all(Pod)):
        if one.metadata.name.startswith("demo-cpu-") and int(one.metadata.name[-1]) >= count:
            made.drop(Pod, ObjectKey(NS, one.metadata.name))


GUESS = NOON + timedelta(minutes=40)
TASK = waits(9, "Resources", "cpu=1,mem=8G,node=1", array_job_id=4, array_tasks="1-3%2", node_count=1)
FINISHED = JobDetail(
    job=job(12, "demo-cpu-0", words=("FAILED",), end_time=GUESS), return_code=2, requested="cpu=1"
)
BOOKED = AccountedJob(
    job_id=13, state=JobState.of("TIMEOUT"), user="ada", nodes=("demo-cpu-1",), end_time=GUESS, return_code=0
)

# What Slurm says of jobs when somebody asks for one.
DETAILS = {
    "job-lacks-memory": (wire.replace(waits(7, "Resources", "cpu=1,mem=8G,node=1", node_count=1), expected_start=GUESS),),
    "job-of-an-array": (TASK, JobDetail(job=job(8, "demo-cpu-0", array_job_id=4, array_task_id=0))),
    "job-without-workers": (waits(7, "Resources", "cpu=1,node=2", node_count=2),),
    "job-that-failed": (FINISHED,),
}  # fmt: skip
JOBS = {
    "job-lacks-memory": Fault("job/7", lacks_memory, "needs 8.0 GiB of memory; of 2 nodes that can take jobs, the one with the most has 4.0 GiB of memory free", "It starts when"),
    "job-of-an-array": Fault("job/4_[1-3]", lacks_memory, "Job 4_[1-3] of ada waits", "It starts when"),
    "job-without-workers": Fault("job/7", no_workers, "Partition all has no node: NodeSet demo-cpu has 0 workers in Slurm", "kubectl -n ns edit cluster demo"),
}  # fmt: skip
# Nothing is wrong with these: they wait.
WAITING = {"held-job", "impossible-job", "full-queue", *JOBS}
ALL = FAULTS | HANGS | ENDING | WITHOUT_NODES | JOBS


@pytest.fixture(scope="module")
def healthy() -> Picture:
    return working()


def broken(fault: Fault, healthy: Picture) -> Picture:
    made = healthy.copy()
    fault.breaks(made)
    kind, name, error = fault.refused or ("", "", "")
    return retold(made, {(kind, name): error} if error else None)


@pytest.mark.parametrize("name", ALL)
def test_explain_names_the_true_cause_and_the_remedy(name: str, healthy: Picture) -> None:
    fault = ALL[name]
    found = explanation(broken(fault, healthy), fault.what, DETAILS.get(name, ()))

    told = text(found).plain
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(told)
    assert found.is_well is (name in WAITING)
    assert fault.cause in told
    assert found.remedy is not None
    assert fault.remedy in found.remedy.advice + " ".join(found.remedy.commands)
    assert found.remedy.commands
    assert told == path.read_text(), (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {path}"
    )


@pytest.mark.parametrize("name", ALL)
def test_ready_comes_back_when_it_is_mended(name: str, healthy: Picture) -> None:
    """With the facts as they were and the status of the bad days, one more look makes everything well."""
    fault = ALL[name]
    sick, repaired = broken(fault, healthy), healthy.copy()
    for reconciler in RECONCILERS:
        for thing in repaired.all(reconciler.about):
            bad = sick.get(reconciler.about, NS, thing.metadata.name)
            repaired.put(wire.replace(thing, status=bad.status))
    retold(repaired)

    for what in ("cluster/demo", "controller/demo", "nodeset/demo-cpu", "accounting/demo"):
        assert explanation(repaired, what).is_well, what
    for reconciler in RECONCILERS:
        for thing in repaired.all(reconciler.about):
            ready = next(one for one in thing.status.conditions if one.type == READY)
            assert (thing.metadata.name, str(ready.status)) == (thing.metadata.name, "True")


def test_there_are_twenty_five_faults() -> None:
    assert len(FAULTS) == 25


@pytest.mark.parametrize("what", ["cluster/demo", "controller/demo", "restapi/demo", "loginset/demo-login", "nodeset/demo-cpu", "accounting/demo", "node/demo-cpu-0", "node/node-1", "pod/demo-cpu-0"])  # fmt: skip
def test_what_works_is_said_to_work(what: str, healthy: Picture) -> None:
    assert explanation(healthy, what).is_well


def test_what_slurmctld_said_last_is_taken_from_its_log_where_the_kubelet_kept_nothing(
    healthy: Picture,
) -> None:
    made = healthy.copy()
    waiting(made, "demo-controller-0", "slurmctld", "CrashLoopBackOff", last=" ")
    [stream] = crashes.silent(made)
    crashes.put(made, {stream: "error: first\nfatal: Incomplete job state save file\ndebug: bye\n"})

    assert stream == ("ns", "demo-controller-0", "slurmctld")
    assert "fatal: Incomplete job state save file" in text(explanation(made, "pod/demo-controller-0")).plain
    assert list(crashes.silent(made)) == []


def test_a_worker_that_runs_again_but_is_not_ready_is_explained_by_its_last_words(healthy: Picture) -> None:
    made = healthy.copy()
    said = "error: getaddrinfo() failed: Temporary failure in name resolution"
    waiting(made, "demo-cpu-1", "slurmd", "CrashLoopBackOff", last=said)
    old = pod(made, "demo-cpu-1")
    running = tuple(wire.replace(one, state=ContainerState()) for one in old.status.container_statuses)
    made.put(wire.replace(old, status=wire.replace(old.status, container_statuses=running)))
    slurm(made)
    made.slurms[SLURM] = Unreachable(since=NOON, why="no answer")
    told = text(explanation(retold(made), "nodeset/demo-cpu")).plain

    assert "Temporary failure in name resolution" in told
    assert "cluster's DNS" in told


def held_change(made: Picture, *jobs) -> Picture:
    """The Controller has a correction that would cost the steps of jobs that have started."""
    controller = made.get(Controller, NS, "demo")
    lines = f"{controller.spec.extra_conf}\nCredType=cred/none\n"
    made.put(wire.replace(controller, spec=wire.replace(controller.spec, extra_conf=lines)))
    slurm(made, jobs=jobs)
    return retold(made)


def test_a_nodeset_that_needs_a_change_which_waits_for_jobs_names_both_and_what_to_do(
    healthy: Picture,
) -> None:
    made = healthy.copy()
    waiting(made, "demo-cpu-1", "slurmd", "CrashLoopBackOff", last="fatal: bad credentials plugin")
    found = explanation(
        held_change(made, job(7, "demo-cpu-0"), job(8, words=("PENDING",))), "nodeset/demo-cpu"
    )
    told = " ".join(text(found).plain.split())

    assert "fatal: bad credentials plugin" in told
    assert "If CredType changes, running steps are interrupted" in told
    assert "jobs that have started: 7." in told
    assert "If the change that is held back is the correction" in found.remedy.advice
    assert "squeue --states=all" in found.remedy.commands


def test_a_nodeset_that_is_well_tells_of_a_change_that_waits_for_jobs(healthy: Picture) -> None:
    found = explanation(held_change(healthy.copy(), job(7, "demo-cpu-0")), "nodeset/demo-cpu")

    assert found.is_well
    [line] = [one for one in found.meanwhile if "held back" in one]
    assert "If CredType changes" in line
    assert line.endswith("jobs that have started: 7.")


def test_a_change_that_waits_for_nobody_is_not_told(healthy: Picture) -> None:
    found = explanation(held_change(healthy.copy(), job(8, words=("PENDING",))), "nodeset/demo-cpu")

    assert not [one for one in found.meanwhile if "held back" in one]


def test_every_moment_of_a_new_cluster_can_be_explained() -> None:
    """Parts wait for each other there, in every order."""
    made = empty()
    made.put(cluster())
    play = Play(made, RECONCILERS)
    for _ in range(30):
        for reconciler in RECONCILERS:
            for thing in made.all(reconciler.about):
                assert explanation(made, f"{reconciler.kind.kind}/{thing.metadata.name}").summary
        play.round()
        made.now += timedelta(seconds=1)


def test_a_restapi_that_waits_for_a_controller_that_is_well_does_not_wait_for_itself(
    healthy: Picture,
) -> None:
    made = healthy.copy()
    made.secrets[ObjectKey(NS, "demo-auth-jwt")] = None
    made.drop(Controller, ObjectKey(NS, "demo"))
    found = explanation(made, "restapi/demo")

    assert "ControllerNotFound" in found.summary


def test_an_object_that_nobody_looks_at_asks_for_the_operator(healthy: Picture) -> None:
    made = healthy.copy()
    nodeset = made.get(NodeSet, NS, "demo-cpu")
    silent = wire.replace(nodeset, status=wire.replace(nodeset.status, conditions=[]))
    made.put(silent)
    assert explanation(made, "nodeset/demo-cpu").is_well  # It is seconds old.
    made.now += timedelta(hours=1)
    _fresh(made)
    found = explanation(made, "nodeset/demo-cpu")

    assert "never been looked at by the operator" in found.summary
    assert "kubectl slurm doctor -n ns" in found.remedy.commands


def test_while_no_operator_runs_what_it_has_not_seen_is_no_success(healthy: Picture) -> None:
    made = healthy.copy()
    nodeset = made.get(NodeSet, NS, "demo-cpu")

    def told(about: NodeSet) -> Explanation:
        made.put(about)
        return explain("nodeset", "demo-cpu", Case(made, RECONCILERS, NS, is_operator_away=True))

    never = told(wire.replace(nodeset, status=wire.replace(nodeset.status, conditions=[])))
    changed = told(wire.replace(nodeset, metadata=wire.replace(nodeset.metadata, generation=99)))
    seen = told(nodeset)

    assert "never been looked at" in never.summary  # It is seconds old.
    assert changed.summary == "has changed since the operator last looked at it."
    assert "No operator runs that you can see" in changed.remedy.advice
    assert (never.is_well, changed.is_well, seen.is_well) == (False, False, True)


def test_a_pod_of_a_deployment_is_found_by_its_name(healthy: Picture) -> None:
    assert explanation(healthy, f"pod/{one_of(healthy, 'demo-restapi-')}").is_well


def test_a_cluster_with_one_node_left_is_well(healthy: Picture) -> None:
    made = healthy.copy()
    drained_by_human(made)

    assert explanation(retold(made), "cluster/demo").is_well
    assert explanation(made, "nodeset/demo-cpu").is_well


def test_workers_that_are_being_replaced_are_no_trouble(healthy: Picture) -> None:
    made = healthy.copy()
    all_drained(reason="slurm-operator: Update: a new revision (pods made until 2026-01-02T00:00:00Z)")(made)

    assert all_unusable(made.slurms[SLURM].nodes.values()) is None


def test_who_drained_a_node_is_told_to_lift_it_without_force(healthy: Picture) -> None:
    made = healthy.copy()
    drained_by_human(made)
    found = explain("node", "demo-cpu-1", Case(made, RECONCILERS, NS, user="grace"))

    assert found.remedy.advice.startswith("You drained it")
    assert found.remedy.commands == ("kubectl slurm undrain demo-cpu-1 -n ns",)


@pytest.mark.parametrize("user", ["grace", "ada"])
def test_undrain_does_what_explain_suggests(user: str, healthy: Picture) -> None:
    made = healthy.copy()
    drained_by_human(made)
    [command] = explain("node", "demo-cpu-1", Case(made, RECONCILERS, NS, user=user)).remedy.commands
    decision = undraining(["demo-cpu-1"], made.slurms[SLURM].nodes, user, force="--force" in command)

    assert decision.write is not None
    assert decision.answers == {}


@pytest.mark.parametrize("written", ["4_1", "4_[1-3]", "4"])
def test_every_id_that_squeue_prints_finds_its_job(written: str, healthy: Picture) -> None:
    made = healthy.copy()
    lacks_memory(made)
    found = explanation(made, f"job/{written}", DETAILS["job-of-an-array"])

    assert "waits in partition all" in found.summary
    assert found.is_well


def test_a_task_and_a_part_of_a_job_are_found_by_their_own_ids(healthy: Picture) -> None:
    part = JobDetail(job=job(6, "demo-cpu-0", het_job_id=5), het_offset=1)

    assert "is RUNNING on demo-cpu-0" in explanation(healthy, "job/4_0", DETAILS["job-of-an-array"]).summary
    assert "is RUNNING on demo-cpu-0" in explanation(healthy, "job/5+1", (part,)).summary
    with pytest.raises(NotThere, match="no record of job 5\\+2"):
        explanation(healthy, "job/5+2", (part,))
    with pytest.raises(NotThere, match=r"no id of a job.*4_\[1-3\]"):
        explanation(healthy, "job/nonsense")


def test_how_a_job_ended_is_told_by_slurm_and_then_by_accounting(healthy: Picture) -> None:
    failed = explanation(healthy, "job/12", DETAILS["job-that-failed"])
    case = Case(healthy, RECONCILERS, NS, booked={SLURM: (BOOKED,)})
    booked = explain("job", "13", case)

    assert (
        failed.summary == "of ada failed at 2026-01-01 12:40:00 UTC, with exit code 2. It ran on demo-cpu-0."
    )
    assert booked.summary.startswith(
        "of ada ran into its time limit at 2026-01-01 12:40:00 UTC. It ran on demo-cpu-1."
    )
    assert failed.is_well
    assert booked.is_well


def test_an_array_is_told_as_a_whole(healthy: Picture) -> None:
    made = healthy.copy()
    lacks_memory(made)
    told = text(explanation(made, "job/4", DETAILS["job-of-an-array"])).plain

    assert "Job 4 has 2 records in Slurm: 1 pending, 1 running." in told


def rollout_under_way(made: Picture) -> None:
    """A new image; the one worker that is being replaced has a job, the other one is idle."""
    nodeset = made.get(NodeSet, NS, "demo-cpu")
    spec = wire.replace(nodeset.spec, slurmd={**nodeset.spec.slurmd, "image": "slurmd:new"})
    made.put(wire.replace(nodeset, spec=spec, metadata=wire.replace(nodeset.metadata, generation=2)))
    images = wire.replace(made.get(Cluster, NS, "demo").spec.images, slurmd="slurmd:new")
    _spec_of_cluster(made, images=images)
    reason = "slurm-operator: Update: being replaced (pods made until 2026-01-02T00:00:00Z)"
    busy = {"state": state("ALLOCATED", "DRAIN"), "reason": reason, "reason_changed_at": NOON}
    slurm(made, nodes={"demo-cpu-1": busy}, jobs=(job(7, "demo-cpu-1"),))


@pytest.mark.parametrize("what", ["cluster/demo", "nodeset/demo-cpu"])
def test_a_rollout_says_what_changed_and_who_holds_it_up(what: str, healthy: Picture) -> None:
    made = healthy.copy()
    rollout_under_way(made)
    found = explanation(retold(made), what)
    told = text(found).plain

    assert found.is_well
    assert "is progressing" in found.summary
    assert "because their spec changed: spec.slurmd.image from nothing to slurmd:new" in told
    assert "Worker demo-cpu-1 holds the only rollout slot" in told
    assert "job 7 of ada (RUNNING)" in told
    assert "demo-cpu-0 waits for it, though idle" in told
    assert "are available" not in found.summary
    path = GOLDEN / f"rollout-{what.partition('/')[0]}.txt"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.write_text(told)
    assert told == path.read_text()


def asked(made: Picture, what: str, jobs: tuple[JobDetail, ...] = (), **fields: Any) -> Explanation:
    kind, _, name = what.partition("/")
    case = Case(made, RECONCILERS, NS, jobs={SLURM: jobs} if jobs else {}, **fields)
    return wire.replace(explain(kind, name, case), unseen=case.unseen)


def few_rights(made: Picture) -> Explanation:
    """With Kubernetes' own role `view`."""
    made.slurms[SLURM] = Unreachable(since=NOON, why="secrets is forbidden")
    right = "get secrets in namespace 'ns'"
    hides = "names of Slurm nodes and jobs"
    unseen = Unseen(what="Slurm demo", why=f"You may not {right}", right=right, hides=hides)
    return asked(made, "cluster/demo", unseen=(unseen,))


def mistyped_controller(made: Picture) -> Explanation:
    nodeset = made.get(NodeSet, NS, "demo-cpu")
    ref = wire.replace(nodeset.spec.controller_ref, name="demmo")
    meta = wire.replace(nodeset.metadata, name="gpu", uid="gpu", owner_references=())
    made.put(wire.replace(nodeset, metadata=meta, spec=wire.replace(nodeset.spec, controller_ref=ref)))
    return asked(retold(made), "nodeset/gpu")


def reconfigured(made: Picture) -> Explanation:
    """slurmctld has forgotten when its slurmds started, and jobs run."""
    forgotten = {"slurmd_start_time": None, "state": state("ALLOCATED")}
    slurm(
        made,
        nodes={"demo-cpu-0": forgotten, "demo-cpu-1": forgotten},
        jobs=(job(7, "demo-cpu-0"), job(8, "demo-cpu-1")),
    )
    return asked(retold(made), "nodeset/demo-cpu")


def scaled_in(made: Picture) -> Explanation:
    nodeset = made.get(NodeSet, NS, "demo-cpu")
    made.put(wire.replace(nodeset, spec=wire.replace(nodeset.spec, replicas=1)))
    slurm(made, jobs=(job(7, "demo-cpu-0"), job(8, "demo-cpu-1")))
    return asked(retold(made), "nodeset/demo-cpu")


def halted_rollout(made: Picture) -> Explanation:
    """The first worker of a new revision cannot be pulled, and the other one waits."""
    rollout_under_way(made)
    retold(made)
    slurm(made, nodes={"demo-cpu-1": None})
    old = pod(made, "demo-cpu-1")
    revision = made.get(NodeSet, NS, "demo-cpu").status.node_set_hash
    labels = {**old.metadata.labels, names.LABEL_REVISION: revision}
    made.put(wire.replace(old, metadata=wire.replace(old.metadata, labels=labels, uid="new")))
    message = 'Back-off pulling image "slurmd:new": not found'
    waiting(made, "demo-cpu-1", "slurmd", "ImagePullBackOff", message)
    return asked(retold(made), "nodeset/demo-cpu")


def operator_away(made: Picture) -> Explanation:
    nodeset = made.get(NodeSet, NS, "demo-cpu")
    made.put(wire.replace(nodeset, metadata=wire.replace(nodeset.metadata, generation=99)))
    return asked(made, "nodeset/demo-cpu", is_operator_away=True)


def never_looked_at(made: Picture) -> Explanation:
    nodeset = made.get(NodeSet, NS, "demo-cpu")
    made.put(wire.replace(nodeset, status=wire.replace(nodeset.status, conditions=[])))
    made.now += timedelta(hours=1)
    _fresh(made)
    return asked(made, "nodeset/demo-cpu")


def held_back(made: Picture) -> Explanation:
    return asked(held_change(made, job(7, "demo-cpu-0")), "nodeset/demo-cpu")


def own_drain(made: Picture) -> Explanation:
    drained_by_human(made)
    return asked(made, "node/demo-cpu-1", user="grace")


def pending_for(reason: str, **fields: object) -> Callable[[Picture], Explanation]:
    def waits_for(made: Picture) -> Explanation:
        drained_by_human(made)
        return asked(made, "job/7", (waits(7, reason, "cpu=1,node=1", node_count=1, **fields),))

    return waits_for


def job_asked(what: str, *jobs: JobDetail, **fields: Any) -> Callable[[Picture], Explanation]:
    return lambda made: asked(made, what, jobs, **fields)


RUNS = JobDetail(job=job(7, "demo-cpu-0"))
PART = JobDetail(job=job(6, "demo-cpu-0", het_job_id=5), het_offset=1)
SUSPENDED = JobDetail(job=job(7, "demo-cpu-0", words=("SUSPENDED",)))
NEVER = "DependencyNeverSatisfied"

# What was answered wrongly once, and what people ask every day: the whole text, and whether nothing has to be done.
ANSWERS: dict[str, tuple[Callable[[Picture], Explanation], bool]] = {
    "few-rights": (few_rights, True),
    "mistyped-controller": (mistyped_controller, False),
    "reconfigured": (reconfigured, True),
    "scaled-in": (scaled_in, True),
    "halted-rollout": (halted_rollout, False),
    "operator-away": (operator_away, False),
    "never-looked-at": (never_looked_at, False),
    "held-back": (held_back, True),
    "own-drain": (own_drain, False),
    "job-runs": (job_asked("job/7", RUNS), True),
    "job-suspended": (job_asked("job/7", SUSPENDED), False),
    "job-failed": (job_asked("job/12", FINISHED), True),
    "job-in-accounting": (job_asked("job/13", booked={SLURM: (BOOKED,)}), True),
    "job-part": (job_asked("job/5+1", PART), True),
    "job-depends": (pending_for("Dependency"), True),
    "job-never-starts": (pending_for(NEVER), True),
    "job-too-long": (pending_for("PartitionTimeLimit"), True),
    "job-at-a-limit": (pending_for("QOSMaxJobsPerUserLimit"), True),
    "job-needs-a-drained-node": (pending_for("ReqNodeNotAvail, UnavailableNodes:demo-cpu-1", required_nodes=("demo-cpu-1",)), True),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_is_one_that_was_read(name: str, healthy: Picture) -> None:
    answer, is_well = ANSWERS[name]
    found = answer(healthy.copy())

    told = text(found).plain
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.write_text(told)
    assert found.is_well is is_well
    assert told == path.read_text(), (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {path}"
    )


def test_there_are_more_than_forty_situations_and_no_text_of_any_other() -> None:
    rollouts = {"rollout-cluster", "rollout-nodeset"}
    texts = {path.stem for path in GOLDEN.glob("*.txt") if not path.stem.startswith("slurmcluster-")}

    assert texts == {*ALL, *ANSWERS, *rollouts}
    assert len(texts) > 40


def test_a_cluster_that_is_scaled_in_never_has_more_workers_than_it_wants(healthy: Picture) -> None:
    made = healthy.copy()
    nodeset = made.get(NodeSet, NS, "demo-cpu")
    made.put(wire.replace(nodeset, spec=wire.replace(nodeset.spec, replicas=1)))
    slurm(made, jobs=(job(7, "demo-cpu-0"), job(8, "demo-cpu-1")))
    told = text(explanation(retold(made), "nodeset/demo-cpu")).plain

    assert "2 of 1" not in told
    ready = next(one for one in made.get(NodeSet, NS, "demo-cpu").status.conditions if one.type == READY)
    assert ready.message == "1 of 1 workers are available, and 1 more that will be removed"


def test_a_job_in_a_namespace_that_goes_is_told_when_its_worker_ends(healthy):
    made = broken(ENDING["namespace-goes"], healthy)
    with pytest.raises(NotThere, match=r"Namespace ns has been terminating.*13:00:00 UTC at the latest"):
        explain("job", "7", Case(made, RECONCILERS, NS))
