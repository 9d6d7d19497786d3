"""Twenty-five things that go wrong: `explain` names the true cause and the remedy, and all is well once mended."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_operator import wire
from slurm_operator.api import reading
from slurm_operator.api.conditions import READY
from slurm_operator.api.controller import Controller
from slurm_operator.api.meta import Meta, ObjectKey
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.token import Token
from slurm_operator.kubectl import last_words
from slurm_operator.kubectl.explain_text import text
from slurm_operator.kubectl.picture import Picture
from slurm_operator.kubectl.planning.play import Play
from slurm_operator.manifests import kinds
from slurm_operator.manifests.events import Event, Regarding
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ContainerState, KubeNode, Pod, PodCondition
from slurm_operator.slurm.snapshot import Unreachable
from support.pictures import (
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
    controller = made.get(Controller, NS, "demo")
    made.put(
        wire.replace(
            controller, spec=wire.replace(controller.spec, extra_conf="SchedulerTyp=sched/backfill\n")
        )
    )


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
    token = reading.read(Token, {"metadata": meta, "spec": spec})
    made.put(token)
    notes = {
        "token.slinky.slurm.net/issued-at": "2026-01-01T10:00:00+00:00", "token.slinky.slurm.net/expires-at": "2026-01-01T11:00:00+00:00",
        "token.slinky.slurm.net/username": "ada", "token.slinky.slurm.net/key-digest": _signing_digest(made),
    }  # fmt: skip
    owner = {"apiVersion": "v1", "kind": "Token", "name": "ada", "uid": "token", "controller": True}
    meta = reading.read(
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
    "missing-secret": Fault("cluster/demo", missing_secret, "Secret 'db'", "Make the Secret"),
    "wrong-key": Fault("cluster/demo", wrong_key, "has no entry 'password' (it has: pass)", "Add the entry"),
    "bad-image": Fault("nodeset/demo-cpu", bad_image, "slurmd:typo", "Correct the image"),
    "no-node-fits": Fault("nodeset/demo-cpu", no_node_fits, "Insufficient cpu", "ask for less"),
    "volume-pending": Fault("cluster/demo", volume_pending, "no StorageClass 'fast'", "Make StorageClass"),
    "database-down": Fault("cluster/demo", database_says("ERROR 2003: no answer"), "does not answer", "Start the database"),
    "wrong-grant": Fault("accounting/demo", database_says("ERROR 1044 (42000): Access denied for user 'slurm'@'%' to database"), "GRANT ALL", "Run the GRANT"),
    "slurmctld-crash": Fault("cluster/demo", slurmctld_crash, "Can not recover assoc_usage state", "See in the log"),
    "config-refused": Fault("controller/demo", config_refused, "SchedulerTyp", "Correct the line"),
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
    "node-lost": Fault("nodeset/demo-cpu", node_lost, "Kubelet stopped posting", "Bring the machine back"),
    "version-skew": Fault("nodeset/demo-cpu", version_skew, "newer than slurmctld 26.05.5", "Update the Controller first"),
    "name-clash": Fault("cluster/demo", name_clash, "exists already", "choose another name"),
}  # fmt: skip

# One trouble, asked about in three ways.
HANGS = {
    "slurmd-hangs": Fault("nodeset/demo-cpu", slurmd_hangs, "runs and has not been ready since", "See what slurmd waits for"),
    "slurmd-hangs-pod": Fault("pod/demo-cpu-1", slurmd_hangs, "Nothing kills it", "nodeset.slinky.slurm.net/replace=true"),
    "slurmd-hangs-node": Fault("node/demo-cpu-1", slurmd_hangs_drained, "drained by the operator: slurmd is not ready", "lifted when it does"),
}  # fmt: skip
ALL = FAULTS | HANGS


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
    found = explanation(broken(fault, healthy), fault.what)

    told = text(found).plain
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(told)
    assert not found.is_well
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
    sick, mended = broken(fault, healthy), healthy.copy()
    for reconciler in RECONCILERS:
        for thing in mended.all(reconciler.about):
            bad = sick.get(reconciler.about, NS, thing.metadata.name)
            mended.put(wire.replace(thing, status=bad.status))
    retold(mended)

    for what in ("cluster/demo", "controller/demo", "nodeset/demo-cpu", "accounting/demo"):
        assert explanation(mended, what).is_well, what
    for reconciler in RECONCILERS:
        for thing in mended.all(reconciler.about):
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
    [stream] = last_words.silent(made)
    last_words.put(made, {stream: "error: first\nfatal: Incomplete job state save file\ndebug: bye\n"})

    assert stream == ("ns", "demo-controller-0", "slurmctld")
    assert "fatal: Incomplete job state save file" in text(explanation(made, "pod/demo-controller-0")).plain
    assert list(last_words.silent(made)) == []


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


def test_a_pod_of_a_deployment_is_found_by_its_name(healthy: Picture) -> None:
    assert explanation(healthy, f"pod/{one_of(healthy, 'demo-restapi-')}").is_well
