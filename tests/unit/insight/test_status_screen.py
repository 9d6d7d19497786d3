"""One screen that says how a Slurm cluster is: in files that a review can read."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api import Accounting, Controller, LoginSet, NodeSet, RestApi
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.insight.clusters import NotFound, clusters, clusters_named, only, strays
from slurm_operator.insight.collect import Limited, Unseen, private_in, token_user
from slurm_operator.insight.evaluation import Verdict, verdicts
from slurm_operator.insight.status.cluster_status import health, status, stray_status
from slurm_operator.insight.status.waiting_jobs import meaning
from slurm_operator.insight.text.status_text import screen
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
    Unread,
)
from slurm_operator.operator import reconcilers
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.conditions import true
from slurm_operator.plan.plan import lane, plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers import nodeset
from slurm_operator.runtime.settings import Settings
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState
from slurm_operator.slurmrest.tokens import signed
from testing.clusters import NOW, cluster, saying, settled, world
from testing.texts import assert_text

SPEC = {"nodeSets": [{"name": "cpu", "replicas": 2}], "logins": [{"name": "login"}]}
TOLD = {"observedGeneration": 1, "slurmVersion": "26.05.5"}
GOOD = {"type": "Ready", "status": "True", "reason": "Working", "message": "All parts are ready, and Slurm answers."}  # fmt: skip


def pod(daemon: str, owner: str, name: str, *, ready=True, waiting="", is_older=False) -> Pod:
    state = ContainerState(waiting=ContainerStateWaiting(reason=waiting, message="no such image") if waiting else None)  # fmt: skip
    return Pod(
        metadata=Meta(
            name=name, namespace="ns", uid=name, labels={names.APP_NAME: daemon, names.APP_INSTANCE: owner},
            annotations={} if is_older else {names.POD_SECURITY: names.POD_SECURITY_NOW},
        ),
        status=PodStatus(
            phase="Running" if ready else "Pending",
            conditions=[PodCondition(type="Ready", status="True" if ready else "False")],
            container_statuses=[ContainerStatus(name=daemon, ready=ready, restart_count=1, state=state)],
        ),
    )  # fmt: skip


def pods(*, login_image_is_bad: bool = False) -> list[Pod]:
    bad = {"ready": False, "waiting": "ImagePullBackOff"} if login_image_is_bad else {}
    return [
        pod("slurmctld", "demo", "demo-controller-0"),
        pod("slurmrestd", "demo", "demo-restapi-x"),
        pod("login", "demo-login", "demo-login-x", **bad),
        pod("slurmd", "demo-cpu", "demo-cpu-0"),
        pod("slurmd", "demo-cpu", "demo-cpu-1"),
    ]


def node(name: str, *words: str, reason: str = "", by: str = "slurm", minutes: int = 5) -> SlurmNode:
    since = NOW - timedelta(minutes=minutes) if reason else None
    state = NodeState.of(*words, "DYNAMIC_NORM")
    return SlurmNode(name=name, state=state, reason=reason, reason_set_by=by, reason_changed_at=since)


def job(job_id: int, words: str, *nodes: str, why: str = "", user: str = "ada") -> SlurmJob:
    state = JobState.of(*words.split("+"))
    return SlurmJob(job_id=job_id, state=state, user=user, nodes=nodes, state_reason=why, partition="all")


def snapshot(nodes: list[SlurmNode], jobs: list[SlurmJob]) -> Snapshot:
    return Snapshot(
        nodes={one.name: one for one in nodes},
        jobs={one.job_id: one for one in jobs},
        jobs_by_node=jobs_by_node(jobs),
        nodes_asked_at=NOW,
        jobs_asked_at=NOW,
        release="26.05.5",
    )


HELD = {"finalizers": [names.IN_USE_FINALIZER]}  # Its NodeSets come with that.


def made(slurm: Snapshot | Unreachable, more: list[Pod], *, told: dict | None = None, **workers):
    """A Cluster `demo` whose parts are all ready, as far as a test does not say otherwise."""
    whole = cluster(
        SPEC, status={**TOLD, "conditions": [told or GOOD]}, creationTimestamp="2026-01-01T09:00:00Z", **HELD
    )
    there = settled(world(whole))
    for kind, name in ((Controller, "demo"), (RestApi, "demo"), (LoginSet, "demo-login")):
        saying(there, kind, name, "True", message="it works")
    numbers = {"desired": 2, "registeredReplicas": 2, **workers}
    saying(there, NodeSet, "demo-cpu", "True", message="2 of 2 workers are available", **numbers)
    there.things += more
    there.slurms[ObjectKey("ns", "demo")] = slurm
    return there


def waiting(there, *waits: Wait) -> Verdict:
    """What the operator thinks of the NodeSet: it holds these back."""
    about = there.get(NodeSet, "ns", "demo-cpu")
    return Verdict(
        nodeset.RECONCILER, about, None, plan(lane("demo-cpu-1", waits)), StatusReport(conditions=())
    )


def shown(there, *judged: Verdict, unseen=()) -> str:
    return screen([status(one, judged, unseen) for one in clusters(there)], unseen, NOW).plain


def busy() -> Snapshot:
    nodes = [
        node("demo-cpu-0", "MIXED"),
        node("demo-cpu-1", "MIXED", "DRAIN", reason="slurm-operator: ScaleIn: leaving (pod 4f1c-aa)"),
        *(node(f"big-{n}", "IDLE") for n in range(3)),
        node("big-3", "IDLE", "DRAIN", reason="ada: bad cable", minutes=600),
        node("big-4", "DOWN", "NOT_RESPONDING", reason="Not responding", by="root"),
    ]
    jobs = [
        job(1, "RUNNING", "demo-cpu-0"),
        job(2, "RUNNING", "demo-cpu-1", user="bob"),
        *(job(n, "PENDING", why="Priority", user="bob") for n in range(10, 20)),
        job(20, "PENDING", why="Resources"),
        job(21, "PENDING", why="ReqNodeNotAvail, UnavailableNodes:big-3"),
        job(22, "CANCELLED+COMPLETING", "demo-cpu-0"),
    ]
    return snapshot(nodes, jobs)


def test_a_healthy_cluster():
    idle = snapshot([node("demo-cpu-0", "IDLE"), node("demo-cpu-1", "IDLE")], [])

    assert_text("status/healthy.txt", shown(made(idle, pods())))


def test_pods_of_earlier_versions_are_counted():
    older = pod("slurmd", "demo-cpu", "demo-cpu-1", is_older=True)
    there = made(snapshot([node("demo-cpu-0", "IDLE")], []), [*pods()[:-1], older])

    assert "1 pod made by an earlier version, with fewer limits; `kubectl slurm doctor` says how" in shown(
        there
    )


def test_a_busy_cluster_with_drains_and_waiting_jobs():
    there = made(busy(), pods(), draining=1, slurmAllocated=2)
    held = Wait(subject="demo-cpu-1", reason="Draining", message="waiting for job 2 of bob (RUNNING)")

    assert_text("status/busy.txt", shown(there, waiting(there, held)))


def drained() -> Snapshot:
    by_root = {"reason": "bad NIC", "by": "root"}
    return snapshot([node(f"demo-cpu-{n}", "IDLE", "DRAIN", **by_root) for n in range(2)], [])


def test_a_cluster_whose_nodes_are_all_drained_is_not_healthy():
    there = made(drained(), pods())

    assert_text("status/drained.txt", shown(there))
    [found] = [status(one, ()) for one in clusters(there)]
    assert found.health.state == "TakesNoJobs"
    assert [one.health.state for one in found.node_sets] == ["TakesNoJobs"]


def test_who_cannot_ask_slurm_hears_of_drained_nodes_from_the_status():
    away = Unreachable(since=NOW, why="the right to get services/proxy is missing")
    there = made(away, pods(), slurmDrain=2)
    there.things = [
        codec.read(Cluster, {**codec.plain(one), "status": {**codec.plain(one)["status"], "nodes": {"total": 2, "drained": 2}}})
        if isinstance(one, Cluster)
        else one
        for one in there.things
    ]  # fmt: skip
    [found] = [status(one, ()) for one in clusters(there)]

    assert found.health.message == "Ready, but 2 of 2 nodes take no new jobs (2 drained)."
    assert [one.health.state for one in found.node_sets] == ["TakesNoJobs"]


def test_a_cluster_whose_slurm_is_away_and_whose_login_cannot_start():
    away = Unreachable(since=NOW, why="cannot reach Slurm to read the nodes: no connection")
    told = {"type": "Ready", "status": "False", "reason": "PodsNotReady", "message": "LoginSet demo-login: 0 of 1 login pods are ready."}  # fmt: skip
    there = made(away, pods(login_image_is_bad=True), told=told)
    unseen = [Unseen(what="nodes", why="forbidden", right="list nodes")]

    assert_text("status/broken.txt", shown(there, unseen=unseen))


def test_the_whole_of_it_is_json_too():
    there = made(busy(), pods())

    found = wire.decode_any(wire.pretty([status(one, ()) for one in clusters(there)]))

    assert found[0]["waiting_jobs"][0]["jobs"] == list(range(10, 20))
    assert {group["state"] for group in found[0]["nodes"]} == {"mixed", "draining", "idle", "drained", "down"}


def test_a_controller_without_a_cluster_is_a_cluster_too_and_a_slurm_elsewhere_has_no_parts():
    there = made(busy(), pods())
    elsewhere = {"server": "http://slurm:6820", "token": {"secretRef": "token"}}
    there.things.append(cluster(elsewhere, name="old", uid="uid-old"))
    there.things = [
        thing for thing in there.things if (type(thing), thing.metadata.name) != (Cluster, "demo")
    ]

    alone, old = clusters(there)

    assert (str(alone.key), type(alone.about), alone.is_elsewhere) == ("ns/demo", Controller, False)
    assert [type(part).__name__ for part in alone.parts] == ["Controller", "RestApi", "LoginSet", "NodeSet"]
    assert (str(old.key), old.parts, old.is_elsewhere) == ("ns/old", (), True)
    assert only([alone, old], "old") is old
    with pytest.raises(NotFound, match=r"several Slurm clusters.* ns/demo, ns/old"):
        only([alone, old], "")
    with pytest.raises(NotFound, match="There are: ns/demo, ns/old"):
        clusters_named([alone, old], "demoo")
    with pytest.raises(NotFound, match="There is no Slurm cluster here"):
        clusters_named([], "")


def test_what_waits_is_what_the_operators_own_plans_hold_back():
    there = settled(world(cluster(SPEC, **HELD)))
    judged = list(verdicts(reconcilers(Settings()), there))

    [found] = [status(one, judged) for one in clusters(there)]

    held = [wait for verdict in judged for wait in verdict.plan.waits]
    assert [(wait.reason, wait.message) for wait in found.waiting] == [(w.reason, w.message) for w in held]
    assert any("demo-auth-slurm" in wait.message for wait in found.waiting)


def test_who_may_not_see_everything_is_told_what_the_objects_say_and_not_a_guess():
    status_ = {**TOLD, "nodes": {"total": 3, "idle": 3}, "jobs": {"running": 1}}
    there = settled(world(cluster(SPEC, status=status_, **HELD)))
    progress = "waiting for job 2 of bob"
    saying(there, NodeSet, "demo-cpu", "True", message="2 of 2 workers are available", progress=progress)
    there.things = [_progressing(thing) if isinstance(thing, NodeSet) else thing for thing in there.things]
    there.with_secret(Unread(why="forbidden"), ObjectKey("ns", "demo-auth-jwt"))
    judged = list(verdicts(reconcilers(Settings()), there))

    unseen = [Unseen(what="Secret ns/x", why="forbidden", right="get secrets in namespace ns")]
    [found] = [status(one, judged, unseen) for one in clusters(there)]

    assert [(wait.subject, wait.message) for wait in found.waiting] == [("NodeSet demo-cpu", progress)]
    assert "you may not read Secret demo-auth-jwt" in found.unreachable
    assert found.last_counted == "3 nodes (3 idle), 1 running and 0 pending jobs"


def _progressing(node_set: NodeSet) -> NodeSet:
    plain = codec.plain(node_set)
    for condition in plain["status"]["conditions"]:
        condition["status"] = "True"
    return codec.read(NodeSet, plain)


@pytest.mark.parametrize(
    ("status_", "generation", "state"),
    [
        ({"conditions": []}, 1, "Unknown"),
        ({"conditions": [GOOD], "observedGeneration": 1}, 2, "Changing"),
        ({"conditions": [GOOD], "observedGeneration": 2}, 2, "Ready"),
        ({"conditions": [GOOD, {"type": "Degraded", "status": "True", "reason": "X"}], "observedGeneration": 1}, 1, "Degraded"),
        ({"conditions": [GOOD, {"type": "Progressing", "status": "True", "reason": "X"}], "observedGeneration": 1}, 1, "Progressing"),
        ({"conditions": [{**GOOD, "status": "False"}], "observedGeneration": 1}, 1, "NotReady"),
    ],
)  # fmt: skip
def test_trouble_comes_before_everything_else(status_, generation, state):
    assert health(cluster(SPEC, status=status_, generation=generation)).state == state


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "waits for enough free"),
        ("ReqNodeNotAvail, UnavailableNodes:gpu-3", "down, drained or reserved"),
        ("AssocGrpCpuLimit", "a limit of its account or QOS"),
        ("QOSMaxJobsPerUserLimit", "a limit of its account or QOS"),
        ("SomethingOfTheFuture", ""),
    ],
)
def test_reasons_of_slurm_are_told_in_words_where_we_have_any(reason, words):
    assert words in meaning(reason)
    assert bool(words) == bool(meaning(reason))


def test_private_data_does_not_turn_into_no_jobs():
    idle = snapshot([node("demo-cpu-0", "IDLE"), node("demo-cpu-1", "IDLE")], [])
    there = made(idle, pods())
    counted = {"nodes": {"total": 2, "idle": 2}, "jobs": {"running": 3, "pending": 1}}
    there.things = [
        codec.read(Cluster, {**codec.plain(one), "status": {**codec.plain(one)["status"], **counted}})
        if isinstance(one, Cluster)
        else one
        for one in there.things
    ]
    limited = Limited(user="ada", private=("jobs",))
    text = screen([status(one, (), (), limited) for one in clusters(there)], (), NOW).plain

    assert "None that you may see." in text
    assert (
        "hides jobs of others from ada. The operator counts 2 nodes (2 idle), 3 running and 1 pending jobs."
        in text
    )


@pytest.mark.parametrize(
    ("conf", "private"),
    [
        ("", ()),
        ("PrivateData=jobs,Nodes\n", ("jobs", "nodes")),
        ("privatedata = jobs\nPrivateData=none", ()),
        ("#PrivateData=jobs", ()),
    ],
)
def test_what_is_private_stands_in_the_configuration(conf, private):
    assert private_in(conf) == private


def test_a_token_says_whom_it_speaks_for():
    now = NOW
    assert token_user(signed(b"key", user="ada", now=now, lifetime=timedelta(hours=1))) == "ada"
    assert token_user("nonsense") == token_user("a.b.c") == ""


def test_who_may_not_see_pods_is_not_told_that_none_is_ready():
    there = made(snapshot([node("demo-cpu-0", "IDLE")], []), [], readyReplicas=2, replicas=2)
    unseen = [Unseen(what="pods", why="forbidden", right="list pods", hides="pods of daemons")]
    text = shown(there, unseen=unseen)

    assert "slurmctld    Controller demo       ?       ?          Ready" in text
    assert "demo-cpu   2        2       2" in text
    assert "You may not list pods. Not shown: pods of daemons." in text


def test_parts_of_no_cluster_are_shown_with_the_controllers_there_are():
    there = made(snapshot([node("demo-cpu-0", "IDLE")], []), pods())
    lost = {
        "metadata": {"name": "typo", "namespace": "ns", "uid": "t"},
        "spec": {"controllerRef": {"name": "demoo"}},
    }
    books = {"metadata": {"name": "books", "namespace": "ns", "uid": "b"}, "spec": {}}
    there.things += [codec.read(NodeSet, lost), codec.read(Accounting, books)]
    found = [stray_status(one, there) for one in strays(there)]
    text = screen(found, (), NOW).plain

    assert [(one.kind, one.name) for one in found] == [("Accounting", "books"), ("NodeSet", "typo")]
    assert "NodeSet ns/typo   NoController" in text
    assert "names Controller 'demoo', which does not exist; there are: demo." in text
    assert "No Controller in this namespace names it in accountingRef." in text
    assert "Waiting" not in text


def test_everything_that_waits_is_listed_and_only_who_is_removed_is_leaving():
    drains = [
        {"slurmNode": "demo-cpu-0", "reason": "NodeCordon", "jobs": ["7"], "message": "Node n1 was cordoned"},
        {"slurmNode": "demo-cpu-1", "reason": "ScaleIn", "jobs": [], "message": "leaving"},
    ]
    there = made(busy(), pods(), draining=2, drains=drains)
    about = there.get(NodeSet, "ns", "demo-cpu")
    halted = true("Progressing", "AwaitsWorkers", "1 of 2 workers have a previous revision")
    judged = Verdict(nodeset.RECONCILER, about, None, plan(), StatusReport(conditions=[halted]))
    [found] = [status(one, [judged]) for one in clusters(there)]

    assert [(one.subject, one.reason) for one in found.waiting] == [
        ("NodeSet demo-cpu", "AwaitsWorkers"),
        ("NodeSet demo-cpu: demo-cpu-0", "NodeCordon"),
    ]
    assert found.waiting[1].message == "Node n1 was cordoned; waiting for job 7"
    assert [one.draining for one in found.node_sets] == [1]
