"""What a NodeSet decides, case by case."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    PodCondition,
)
from slurm_operator.plan.actions import DeleteWorker, Wait, WriteSlurm
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER, reconciler
from slurm_operator.reconcilers.nodeset.identity import daemon_pod_name
from slurm_operator.reconcilers.nodeset.records.registration_check import mismatches
from slurm_operator.safety.gate import Drained, NeverStarted
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.writes import DrainNodes
from slurm_operator.slurmsync.writer import write_without_nodes
from testing.workers import (
    CONTROLLER,
    KEY,
    NOW,
    controller,
    job,
    machine,
    nodeset,
    ours,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

HEAD = controller()


TWO = nodeset(replicas=2)
R = revision_of(TWO)
HASH = R.metadata.labels[names.LABEL_REVISION]


def w(ordinal, **kwargs):
    return worker(ordinal, **{"revision": HASH, **kwargs})


A, B, C = w(0), w(1), w(2)
BEFORE = NOW - timedelta(seconds=15)
LONG_AGO = wire.replace(slurm(slurm_node(A, "IDLE"), slurm_node(B, "IDLE")), nodes_asked_at=BEFORE, jobs_asked_at=BEFORE)  # fmt: skip


TAINTED = machine("n1", taints=[("special", "NoExecute")])
TOLERANT = {"spec": {"tolerations": [{"key": "special", "operator": "Exists"}]}}
A_MINUTE = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
FOR_A_MINUTE = {"spec": {"tolerations": [{"key": "special", **A_MINUTE}]}}
DRAINED_BOTH = ["drain gpu-0 for NodeTaint", "drain gpu-1 for NodeTaint"]


@pytest.mark.parametrize(
    ("there", "template", "story"),
    [
        pytest.param(TAINTED, {}, DRAINED_BOTH, id="nobody may stay who does not tolerate it: no new jobs there"),
        pytest.param(TAINTED, TOLERANT, [], id="tolerated"),
        pytest.param(TAINTED, FOR_A_MINUTE, DRAINED_BOTH, id="tolerated for a minute: jobs take longer"),
        pytest.param(machine("n1", taints=[("special", "NoSchedule")]), {}, [], id="only for those who come"),
        pytest.param(machine("n1", taints=[("node.kubernetes.io/unreachable", "NoExecute")]), {}, [], id="a silent machine"),
        pytest.param(machine("n1", taints=[("node.kubernetes.io/not-ready", "NoExecute")]), {}, [], id="a machine that is not ready"),
    ],
)  # fmt: skip
def test_a_taint_that_sends_workers_away_drains_those_that_do_not_tolerate_it(there, template, story):
    spec = nodeset(replicas=2, template=template)
    label = revision_of(spec).metadata.labels[names.LABEL_REVISION]
    a, b = w(0, revision=label), w(1, revision=label)
    state = slurm(slurm_node(a, "MIXED"), slurm_node(b, "IDLE"), jobs=[job(1, "gpu-0")])

    assert told(world(spec, HEAD, a, b, there, revisions_=[revision_of(spec)], slurm_=state)) == story


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(
            world(TWO, HEAD), [f"create ControllerRevision gpu-{HASH}", "create Pod gpu-0", "create Pod gpu-1"],
            id="from nothing: workers do not wait for slurmrestd",
        ),
        pytest.param(world(TWO, revisions_=[R]), ["wait new workers: ControllerNotFound"], id="no Controller yet"),
        pytest.param(world(TWO, HEAD, A, B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE"), slurm_node(B, "MIXED"))), [], id="in order"),
        pytest.param(world(TWO, HEAD, B, revisions_=[R]), ["create Pod gpu-0"], id="the lowest free number"),
        pytest.param(
            world(TWO, HEAD, A, B, C, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE"), slurm_node(B, "IDLE"), slurm_node(C, "IDLE"))),
            ["drain gpu-2 for ScaleIn"], id="scale in: the highest idle number drains first",
        ),
        pytest.param(
            world(TWO, HEAD, A, B, C, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE"), slurm_node(B, "IDLE"), slurm_node(C, "MIXED"), jobs=[job(1, "gpu-2")])),
            ["drain gpu-1 for ScaleIn"], id="scale in: an idle one rather than one with a job",
        ),
        pytest.param(
            world(nodeset(replicas=0), HEAD, A, B, revisions_=[R], slurm_=slurm(slurm_node(A, "MIXED", "DRAIN", reason=ours(A, "ScaleIn")), slurm_node(B, "IDLE", "DRAIN", reason=ours(B, "ScaleIn")), jobs=[job(1, "gpu-0")])),
            ["wait gpu-0: Draining", "Retired gpu-1", "forget gpu-1", "delete gpu-1 (Drained)"], id="scale to zero: the free one goes, the busy one is waited for",
        ),
        pytest.param(
            world(nodeset(replicas=0), HEAD, A, revisions_=[R], slurm_=Unreachable(since=NOW, why="no answer")),
            ["wait gpu-0: SlurmUnreachable"], id="Slurm away: nothing is removed",
        ),
        pytest.param(
            world(nodeset(replicas=0), HEAD, w(0, started=False, phase="Pending", ready=False, on=""), revisions_=[R], slurm_=Unreachable(since=NOW, why="")),
            ["delete gpu-0 (NeverStarted)"], id="never started: goes even then",
        ),
        pytest.param(
            world(nodeset(replicas=0), HEAD, w(0, started=False, phase="Pending", ready=False), revisions_=[R], slurm_=Unreachable(since=NOW, why="")),
            ["delete gpu-0 (Unreported)"], id="a machine has it, and nobody knows of slurmd: it is asked to end",
        ),
        pytest.param(
            world(nodeset(replicas=0), HEAD, w(0, started=False, phase="Pending", ready=False), revisions_=[R], slurm_=slurm()),
            ["forget gpu-0", "delete gpu-0 (Unreported)"], id="a slurmd that registers meanwhile with a job is refused to go",
        ),
        pytest.param(
            world(nodeset(replicas=0), HEAD, w(0, started=False, phase="Pending", ready=False), revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason="bad disk, ask Ada"))),
            ["delete gpu-0 (Unreported)"], id="a human's drain bars it as well, and its record stays",
        ),
        pytest.param(
            world(nodeset(replicas=0), HEAD, A, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason="bad disk, ask Ada"))),
            ["Leaving gpu-0", "delete gpu-0 (Drained)"], id="a human's drain: the pod goes, the record stays",
        ),
        pytest.param(
            world(nodeset(replicas=0), HEAD, A, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason=ours(A, "ScaleIn")), jobs=[job(7, words=["PENDING"], required=["gpu-0"])])),
            ["Leaving gpu-0", "delete gpu-0 (Drained)"], id="a pending job insists on it: the record stays",
        ),
        pytest.param(
            world(TWO, HEAD, A, B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason=ours(A, "ScaleIn")), slurm_node(B, "IDLE"))),
            ["resume gpu-0"], id="wanted after all: our drain is lifted",
        ),
        pytest.param(
            world(TWO, HEAD, w(0, protected=False), B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason=ours(A, "ScaleIn")), slurm_node(B, "IDLE"))),
            ["Protected gpu-0", "resume gpu-0"], id="protected again before it takes jobs again",
        ),
        pytest.param(
            world(TWO, HEAD, A, B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason="bad disk, ask Ada"), slurm_node(B, "IDLE", "DRAIN"))),
            [], id="a human's drain stands, with or without a reason",
        ),
        pytest.param(
            world(TWO, HEAD, A, B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason="Kill task failed", changed_at=NOW - timedelta(hours=2)), slurm_node(B, "IDLE"))),
            ["resume gpu-0"], id="slurmctld's own drain goes with the pod it was about",
        ),
        pytest.param(
            world(TWO, HEAD, A, B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason="Epilog error again, hold it", changed_at=NOW - timedelta(hours=2)), slurm_node(B, "IDLE", "DRAIN", reason="Epilog error", reason_set_by="ada", changed_at=NOW - timedelta(hours=2)))),
            [], id="what people say in its words is theirs",
        ),
        pytest.param(
            world(TWO, HEAD, A, B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason="Kill task failed", changed_at=NOW), slurm_node(B, "IDLE"))),
            [], id="but not before",
        ),
        pytest.param(
            world(TWO, HEAD, A, B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason="Not responding", changed_at=NOW - timedelta(hours=2)), slurm_node(B, "IDLE"))),
            [],
            id="a human's drain without a reason, which got one when the node was lost: it stands",
        ),
        pytest.param(
            world(TWO, HEAD, A, B, machine("n1", cordoned=True), revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE"), slurm_node(B, "IDLE", "DRAIN", reason=ours(B, "NodeCordon")))),
            ["drain gpu-0 for NodeCordon", "Released gpu-1"], id="a cordoned machine drains its workers and then lets them be evicted",
        ),
        pytest.param(
            world(TWO, HEAD, A, B, machine("n1", taints=[("karpenter.sh/disrupted", "NoSchedule")]), revisions_=[R], slurm_=slurm(slurm_node(A, "MIXED"), slurm_node(B, "IDLE"), jobs=[job(1, "gpu-0")])),
            ["drain gpu-0 for NodeTaint", "drain gpu-1 for NodeTaint"], id="an autoscaler's taint drains too",
        ),
        pytest.param(
            world(TWO, HEAD, w(0, annotations={names.POD_CORDON: "true"}), B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE"), slurm_node(B, "IDLE"))),
            ["drain gpu-0 for PodCordon"], id="a user's pod-cordon is respected",
        ),
        pytest.param(
            world(TWO, HEAD, w(0, annotations={names.POD_CORDON: "true"}), B, revisions_=[R], slurm_=LONG_AGO),
            ["drain gpu-0 for PodCordon"], id="however long ago Slurm was read: an equal answer would wake nobody",
        ),
        pytest.param(
            world(TWO, HEAD, w(0, annotations={names.POD_CORDON: "true"}), B, revisions_=[R], slurm_=wire.replace(LONG_AGO, behind=frozenset({"gpu-0"}))),
            [], id="but it is not asked twice",
        ),
        pytest.param(
            world(TWO, HEAD, w(0, annotations={names.POD_CORDON: "true"}), B, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason=ours(A, "PodCordon")), slurm_node(B, "IDLE"))),
            ["Released gpu-0"], id="and stays, it is not undone",
        ),
        pytest.param(
            world(nodeset(replicas=2, deleted=True), HEAD, A, B, revisions_=[R], slurm_=slurm(slurm_node(A, "MIXED"), slurm_node(B, "IDLE", "DRAIN", reason=ours(B, "Deletion")), jobs=[job(1, "gpu-0")])),
            ["drain gpu-0 for Deletion", "Retired gpu-1", "forget gpu-1", "delete gpu-1 (Drained)"], id="deleted: one by one through the gate",
        ),
        pytest.param(world(nodeset(replicas=2, deleted=True), HEAD, revisions_=[R]), ["Released gpu"], id="deleted and empty: the finalizer goes, without asking Slurm"),
        pytest.param(
            world(TWO, HEAD, w(0, phase="Failed", ready=False), B, revisions_=[R]), ["delete gpu-0 (Ended)"], id="an ended pod makes room",
        ),
        pytest.param(
            world(TWO, HEAD, w(7, name="gpu-m1", mode="DaemonSet", phase="Failed", ready=False), A, B, revisions_=[R], slurm_=slurm(slurm_node(w(7, name="gpu-m1"), "ALLOCATED"), slurm_node(A, "IDLE"), slurm_node(B, "IDLE"), jobs=[job(1, "gpu-m1")])),
            ["drain gpu-m1 for ModeSwitch", "delete gpu-m1 (Ended)"], id="an ended pod of the mode before: our drain tells whose record is left",
        ),
        pytest.param(
            world(TWO, HEAD, w(7, name="gpu-m1", mode="DaemonSet", phase="Failed", ready=False), A, B, revisions_=[R], slurm_=slurm(slurm_node(w(7, name="gpu-m1"), "DOWN", reason="bad NIC"), slurm_node(A, "IDLE"), slurm_node(B, "IDLE"), jobs=[job(1, "gpu-m1")])),
            ["delete gpu-m1 (Ended)"], id="a reason of somebody else stays there",
        ),
        pytest.param(
            world(TWO, HEAD, w(0, phase="Failed", ready=False, age=timedelta(seconds=1)), B, revisions_=[R]), [], id="but not at once",
        ),
    ],
)  # fmt: skip
def test_a_nodeset_decides(made, story):
    assert told(made) == story


def rolling(count: int, *, new=(), busy=(), unregistered=(), away=(), behind=(), silent=(), down=(), ending=(), budget="50%"):  # fmt: skip
    """`count` workers, some of them of the new revision; the template has just changed.

    `away` are unready for an hour, `ending` are pods on dead machines.
    """
    old_set = nodeset(replicas=count)
    changed = nodeset(
        replicas=count,
        slurmd={"image": "slurmd:next"},
        updateStrategy={"rollingUpdate": {"maxUnavailable": budget}},
    )
    old, new_one = revision_of(old_set), revision_of(changed)
    old_hash, new_hash = (r.metadata.labels[names.LABEL_REVISION] for r in (old, new_one))
    pods = [
        worker(
            n,
            on=f"n{n}",
            revision=new_hash if n in new else old_hash,
            ready=n not in (*away, *ending),
            terminating=n in ending,
            grace=-3600,
        )
        for n in range(count)
    ]
    nodes = [
        slurm_node(
            pod,
            "DOWN" if n in (*down, *ending) else "MIXED" if n in busy else "IDLE",
            *(["NOT_RESPONDING"] if n in silent else []),
        )
        for n, pod in enumerate(pods)
        if n not in unregistered
    ]
    jobs = [job(n + 1, f"gpu-{n}") for n in busy]
    known = wire.replace(slurm(*nodes, jobs=jobs), behind=frozenset(f"gpu-{n}" for n in behind))
    return world(changed, HEAD, *pods, revisions_=[old, new_one], slurm_=known)


@pytest.mark.parametrize(
    ("made", "drained"),
    [
        pytest.param(rolling(8), ["gpu-7"], id="a canary goes first, however large the budget"),
        pytest.param(rolling(8, new=[7], unregistered=[7]), [], id="it has not registered: the rest waits"),
        pytest.param(rolling(8, new=[7]), ["gpu-6", "gpu-5", "gpu-4", "gpu-3"], id="it has: as many as the budget allows"),
        pytest.param(rolling(8, new=[7], busy=[6]), ["gpu-5", "gpu-4", "gpu-3", "gpu-2"], id="idle ones before busy ones"),
        pytest.param(rolling(8, new=[7], away=[0]), ["gpu-0", "gpu-6", "gpu-5", "gpu-4"], id="a broken one goes first and counts"),
        pytest.param(rolling(8, new=[7], away=[0], down=[0]), ["gpu-0", "gpu-6", "gpu-5", "gpu-4"], id="also when Slurm has given it up"),
        pytest.param(rolling(8, new=[7], away=range(7)), ["gpu-6", "gpu-5", "gpu-4", "gpu-3"], id="all were unready while slurmctld was away, and Slurm uses them again"),
        pytest.param(rolling(8, new=[7], away=range(8), silent=range(8)), [], id="slurmctld is just back and has not heard of anybody yet"),
        pytest.param(rolling(8, new=[7], silent=range(7)), [], id="the same, when they are ready already"),
        pytest.param(rolling(8, new=[7], silent=[0, 1]), ["gpu-6", "gpu-5", "gpu-1", "gpu-0"], id="two are silent: they count, and go as all do"),
        pytest.param(rolling(8, ending=[0]), ["gpu-7"], id="one ends for ever on a dead machine: it has not gone ahead"),
        pytest.param(rolling(8, ending=[0], budget=1), [], id="but it counts"),
        pytest.param(rolling(8, new=[7], ending=[0]), ["gpu-6", "gpu-5", "gpu-4"], id="also later"),
        pytest.param(rolling(8, new=[7], unregistered=[1, 2]), ["gpu-6", "gpu-5"], id="every worker that is away counts, whatever the cause"),
        pytest.param(rolling(8, new=[7], budget=1), ["gpu-6"], id="a number"),
        pytest.param(rolling(8, new=[7], budget=1, behind=[2]), [], id="one was just written to: it may be drained by now"),
        pytest.param(rolling(8, new=[7], budget="25%"), ["gpu-6", "gpu-5"], id="a share"),
    ],
)  # fmt: skip
def test_an_update_never_takes_more_than_its_budget(made, drained):
    lines = told(made)

    assert sorted(line for line in lines if line.endswith("for Update")) == sorted(
        f"drain {name} for Update" for name in drained
    )


def test_an_image_that_cannot_be_pulled_takes_no_more_than_the_budget():
    """The canary of the new revision never starts: it is the only one away, for ever."""
    made = rolling(8, new=[7], away=[7], unregistered=[7])

    assert [line for line in told(made) if "drain" in line or "delete" in line] == []


def test_no_worker_is_made_before_the_finalizer_is_there():
    """Who deletes the NodeSet in between would leave workers behind, protected, and nobody to look after them."""
    bare = wire.replace(TWO, metadata=wire.replace(TWO.metadata, finalizers=[]))
    before, after = (told(world(one, HEAD, revisions_=[R])) for one in (bare, TWO))

    assert [line for line in before if line.startswith("create Pod")] == []
    assert "Guarded gpu" in before
    assert [line for line in after if line.startswith("create Pod")] == [
        "create Pod gpu-0",
        "create Pod gpu-1",
    ]


def test_a_replaced_worker_keeps_its_record_and_is_resumed_when_the_new_pod_has_registered():
    made = rolling(2)
    old = next(t for t in made.things if getattr(t.metadata, "name", "") == "gpu-1")
    made.slurms[CONTROLLER] = slurm(
        slurm_node(made.things[2], "IDLE"), slurm_node(old, "IDLE", "DRAIN", reason=ours(old, "Update"))
    )
    assert told(made) == ["Leaving gpu-1", "delete gpu-1 (Drained)"]


def daemons(*machines, pods=(), **spec):
    made = nodeset(scalingMode="DaemonSet", **spec)
    return world(made, HEAD, *machines, *pods, revisions_=[revision_of(made)])


def daemon(on: str, **kwargs):
    spec = nodeset(scalingMode="DaemonSet")
    hash_ = revision_of(spec).metadata.labels[names.LABEL_REVISION]
    return worker(
        None,
        **{
            "on": on,
            "mode": "DaemonSet",
            "name": daemon_pod_name(on, spec),
            "hostname": on.partition(".")[0],
            "revision": hash_,
            **kwargs,
        },
    )


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(daemons(machine("a"), machine("b")), 2, id="one for every machine"),
        pytest.param(daemons(machine("a"), machine("b", taints=[("x", "NoSchedule")])), 1, id="not where it is not tolerated"),
        pytest.param(daemons(machine("a", cordoned=True)), 0, id="not on a cordoned one"),
        pytest.param(daemons(machine("a", cordoned=True), template={"spec": {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}}), 1, id="unless the template tolerates that"),
        pytest.param(daemons(machine("a", taints=[("special", "NoExecute")]), template=FOR_A_MINUTE), 0, id="where it could not stay"),
        pytest.param(daemons(machine("a", cordoned=True), template={"spec": {"tolerations": [{"key": "other", "operator": "Exists"}]}}), 0, id="other tolerations do not"),
        pytest.param(daemons(machine("a", labels={"gpu": "yes"}), machine("b"), template={"spec": {"nodeSelector": {"gpu": "yes"}}}), 1, id="where the selector says"),
        pytest.param(daemons(machine("a"), pods=[daemon("a")]), 0, id="not twice"),
        pytest.param(daemons(machine("a"), pods=[worker(None, on="", phase="Pending", started=False, mode="DaemonSet", name="gpu-other")]), 1, id="a stranger's pending pod is not it"),
    ],
)  # fmt: skip
def test_daemons_come_where_they_belong(made, expected):
    created = [line for line in told(made) if line.startswith("create Pod")]

    assert len(created) == expected


@pytest.mark.parametrize("name", ["node_1", "Rack1", "rack1.example.com", "-a", "a-", "a" * 64, "n\n1"])
def test_a_machine_whose_annotation_is_no_host_name_keeps_no_other_from_its_worker(name):
    """Kubernetes refuses such a pod, and with it all that would have been made behind it."""
    misnamed = machine("a", annotations={names.HOSTNAME_OVERRIDE: name})
    made = daemons(misnamed, machine("b"))
    [wait] = planned(made).waits

    assert told(made) == [
        f"create Pod {daemon_pod_name('b', nodeset())}",
        "wait a: HostnameInvalid",
    ]
    assert f"{names.HOSTNAME_OVERRIDE} of Node a: {name!r}" in wait.message
    assert told(daemons(misnamed)) == ["wait a: HostnameInvalid"]


def test_nobody_goes_for_a_name_that_nobody_can_have():
    pod = daemon("a")
    made = daemons(machine("a", annotations={names.HOSTNAME_OVERRIDE: "node_1"}), pods=[pod])
    made.slurms[CONTROLLER] = slurm(slurm_node(pod, "IDLE"))
    [wrong] = mismatches(RECONCILER.observe(KEY, made))

    assert told(made) == []
    assert wrong["slurmNode"] == "a"
    assert "is no host name" in wrong["message"]
    assert "It keeps the name" in wrong["message"]


@pytest.mark.parametrize(
    ("made", "cause"),
    [
        pytest.param(daemons(pods=[daemon("gone")]), "NodeUnfit", id="its machine is gone"),
        pytest.param(daemons(machine("a", taints=[("x", "NoExecute")]), pods=[daemon("a")]), "NodeUnfit", id="no longer tolerated"),
        pytest.param(daemons(machine("a", annotations={names.HOSTNAME_OVERRIDE: "rack1-a"}), pods=[daemon("a")]), "HostnameMismatch", id="renamed"),
        pytest.param(daemons(machine("a"), pods=[daemon("a"), daemon("a", name="gpu-twin", age=timedelta(minutes=1))]), "Duplicate", id="a twin"),
    ],
)  # fmt: skip
def test_daemons_go_where_they_do_not_belong(made, cause):
    made.slurms[CONTROLLER] = slurm(
        *(slurm_node(t, "IDLE") for t in made.things if hasattr(t, "status") and hasattr(t.status, "phase"))
    )

    drains = [line for line in told(made) if line.startswith("drain")]

    assert len(drains) == 1
    assert drains[0].endswith(f"for {cause}")


def test_of_two_workers_on_a_machine_the_one_with_jobs_stays():
    busy, idle = daemon("a"), daemon("a", name="gpu-twin", hostname="a")
    busy_node, idle_node = slurm_node(busy, "MIXED"), slurm_node(idle, "IDLE")
    made = daemons(machine("a"), pods=[busy, idle])
    made.slurms[CONTROLLER] = slurm(busy_node, jobs=[job(1, "a")])

    seen = RECONCILER.observe(KEY, made)
    leaving = [
        action for action in RECONCILER.decide(seen, NOW).actions() if isinstance(action, Wait | WriteSlurm)
    ]

    assert (
        idle_node.name == busy_node.name
    )  # both claim the name; only the record's own pod counts as registered
    assert all(getattr(action, "subject", "a") == "a" for action in leaving)


def test_switching_modes_lets_the_old_workers_go_when_the_new_ones_are_there():
    made = daemons(machine("n1"), pods=[daemon("n1"), worker(0)])
    made.slurms[CONTROLLER] = slurm(slurm_node(made.things[3], "IDLE"), slurm_node(made.things[4], "IDLE"))

    assert "drain gpu-0 for ModeSwitch" in told(made)


def test_workers_that_go_for_one_cause_drain_by_one_request():
    many = [w(number, age=timedelta(hours=number + 1)) for number in range(30)]
    idle = slurm(*(slurm_node(pod, "IDLE") for pod in many))

    plan = planned(world(nodeset(replicas=0), HEAD, *many, revisions_=[R], slurm_=idle))

    drains = [action.write for action in plan.actions() if isinstance(action, WriteSlurm)]
    assert len(drains) == 30
    assert len({write_without_nodes(write) for write in drains}) == 1, "they differ in nothing but the node"


def test_the_cordon_reason_of_the_one_who_cordoned_is_passed_on():
    conditions = [PodCondition(type="GpuSick", status="True", reason="Xid", message="79")]
    said = machine(
        "n1", cordoned=True, annotations={names.NODE_CORDON_REASON: "fan\nbroken"}, conditions=conditions
    )
    made = world(
        TWO, HEAD, A, B, said, revisions_=[R], slurm_=slurm(slurm_node(A, "IDLE"), slurm_node(B, "IDLE"))
    )

    writes = [action.write for action in planned(made).actions() if isinstance(action, WriteSlurm)]

    assert [write.reason for write in writes if isinstance(write, DrainNodes)] == [
        "slurm-operator: NodeCordon: fan broken (pods made until 2026-01-01T11:00:00Z)"
    ] * 2


@pytest.mark.parametrize(
    ("asked_for", "text"),
    [
        pytest.param((), "Node n1 was cordoned", id="not asked for"),
        pytest.param(("GpuSick",), "(Xid: 79)", id="asked for: the condition says why"),
    ],
)
def test_conditions_of_a_machine_tell_why_it_was_cordoned_where_people_want_that(asked_for, text):
    conditions = [PodCondition(type="GpuSick", status="True", reason="Xid", message="79")]
    made = world(
        TWO, HEAD, A, B, machine("n1", cordoned=True, conditions=conditions), revisions_=[R],
        slurm_=slurm(slurm_node(A, "IDLE"), slurm_node(B, "IDLE")),
    )  # fmt: skip
    one = reconciler(asked_for)

    plan = one.decide(one.observe(KEY, made), NOW)

    drains = [
        a.write for a in plan.actions() if isinstance(a, WriteSlurm) and isinstance(a.write, DrainNodes)
    ]
    assert {OurReason.read(write.reason).text for write in drains} == {text}


def test_status_forecasts_when_a_drain_is_over_and_which_jobs_hold_it_up():
    made = world(
        nodeset(replicas=1), HEAD, A, B, revisions_=[R],
        slurm_=slurm(slurm_node(A, "IDLE"), slurm_node(B, "MIXED", "DRAIN", reason=ours(B, "ScaleIn")), jobs=[job(7, "gpu-1", minutes=90)]),
    )  # fmt: skip
    seen = RECONCILER.observe(KEY, made)
    report = RECONCILER.status(seen, RECONCILER.decide(seen, NOW), Outcome())

    [drain] = report.fields["drains"]
    assert (drain["slurmNode"], drain["jobs"], drain["forecast"]) == (
        "gpu-1",
        ["7"],
        NOW + timedelta(minutes=90),
    )
    assert report.fields["drainedBy"] == NOW + timedelta(minutes=90)


def test_who_may_run_unreported_has_its_whole_grace_period_and_is_asked_once():
    unreported = w(0, started=False, phase="Pending", ready=False)
    asked = w(0, started=False, phase="Pending", ready=False, terminating=True)
    long_ago = wire.replace(asked.metadata, deletion_timestamp=NOW + timedelta(minutes=1))
    gone = world(nodeset(replicas=0), HEAD, unreported, revisions_=[R], slurm_=slurm())

    [delete] = [action for action in planned(gone).actions() if isinstance(action, DeleteWorker)]

    assert delete.grace_seconds is None
    for pod in (asked, wire.replace(asked, metadata=long_ago)):
        made = world(nodeset(replicas=0), HEAD, pod, revisions_=[R], slurm_=slurm(slurm_node(pod, "IDLE")))
        assert told(made) == ["wait gpu-0: Terminating"]


def crashed(pod):
    """Its slurmd is down, until the kubelet starts it again."""
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))
    down = ContainerStatus(name="slurmd", restart_count=1, state=waiting)
    return wire.replace(pod, status=wire.replace(pod.status, container_statuses=[down]))


DOWN = crashed(w(0, ready=False))
OUTDATED = crashed(worker(0, revision="old", ready=False))
NONE = nodeset(replicas=0)
ONE = nodeset(replicas=1)
WISH = job(9, words=["PENDING"], required=["gpu-0"])
OUR_DRAIN = slurm_node(DOWN, "IDLE", "DRAIN", reason=ours(DOWN, "ScaleIn"))


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(world(NONE, HEAD, DOWN, revisions_=[R], slurm_=slurm(slurm_node(DOWN, "IDLE"))), ["drain gpu-0 for ScaleIn"], id="scale in: drained first"),
        pytest.param(
            world(NONE, HEAD, DOWN, revisions_=[R], slurm_=slurm(OUR_DRAIN)), ["delete gpu-0 (NotRunning)", "forget gpu-0"],
            id="then it goes, and the drain stands until it has",
        ),
        pytest.param(
            world(NONE, HEAD, DOWN, revisions_=[R], slurm_=slurm(OUR_DRAIN, jobs=[WISH])), ["delete gpu-0 (NotRunning)"],
            id="a pending job insists on it: the record stays",
        ),
        pytest.param(
            world(ONE, HEAD, OUTDATED, revisions_=[revision_of(ONE)], slurm_=slurm(slurm_node(OUTDATED, "IDLE"))),
            ["drain gpu-0 for Update"], id="an update that fixes it: drained first",
        ),
        pytest.param(
            world(ONE, HEAD, OUTDATED, revisions_=[revision_of(ONE)], slurm_=slurm(slurm_node(OUTDATED, "DOWN", "DRAIN", reason=ours(OUTDATED, "Update")))),
            ["delete gpu-0 (NotRunning)"], id="and replaced then",
        ),
        pytest.param(
            world(ONE, HEAD, OUTDATED, revisions_=[revision_of(ONE)], slurm_=slurm(slurm_node(OUTDATED, "DOWN", reason="bad fan", reason_set_by="ada"))),
            ["wait gpu-0: MarkedByOthers"], id="a human's mark stands",
        ),
    ],
)  # fmt: skip
def test_a_crashed_worker_goes_when_no_job_can_start_in_its_next_slurmd(made, story):
    assert told(made) == story


FREED = w(0, protected=False)
FREED_AND_DOWN = crashed(w(0, ready=False, protected=False))
STARTS = w(0, started=False, phase="Pending", ready=False)
CORDONED = machine("n1", cordoned=True)
BUSY = job(1, "gpu-0")


@pytest.mark.parametrize(
    ("pod", "known", "story"),
    [
        pytest.param(STARTS, slurm(), [], id="its slurmd may be about to start: it stays protected"),
        pytest.param(DOWN, slurm(), [], id="so may one that crashed"),
        pytest.param(DOWN, slurm(slurm_node(DOWN, "IDLE")), ["drain gpu-0 for NodeCordon"], id="which drains, where Slurm knows it"),
        pytest.param(DOWN, slurm(slurm_node(DOWN, "IDLE", "DRAIN", reason=ours(A, "NodeCordon"))), ["Released gpu-0"], id="and is let go then"),
        pytest.param(FREED, slurm(slurm_node(A, "IDLE")), ["Protected gpu-0", "drain gpu-0 for NodeCordon"], id="let go, and somebody lifted the drain"),
        pytest.param(FREED, slurm(slurm_node(A, "MIXED"), jobs=[BUSY]), ["Protected gpu-0", "drain gpu-0 for NodeCordon"], id="and a job started"),
        pytest.param(FREED, slurm(slurm_node(A, "MIXED", "DRAIN", reason="mine"), jobs=[BUSY]), ["Protected gpu-0"], id="and it was drained again"),
        pytest.param(FREED, slurm(slurm_node(A, "IDLE", reason="bad disk")), ["Protected gpu-0", "wait gpu-0: MarkedByOthers"], id="and left a note that keeps us from draining it"),
        pytest.param(FREED_AND_DOWN, slurm(slurm_node(A, "MIXED", "DRAIN", reason="mine"), jobs=[BUSY]), ["Protected gpu-0"], id="and crashed"),
        pytest.param(FREED, slurm(slurm_node(A, "IDLE", "DRAIN", reason=ours(A, "NodeCordon"))), [], id="let go, and free"),
        pytest.param(FREED, wire.replace(slurm(slurm_node(A, "IDLE", "DRAIN")), nodes_asked_at=BEFORE), [], id="not read for a while: it stays as it is"),
        pytest.param(FREED, Unreachable(since=NOW, why="no answer"), [], id="as when Slurm is away"),
    ],
)  # fmt: skip
def test_a_worker_on_a_cordoned_machine_is_protected_unless_no_job_can_be_there(pod, known, story):
    one = nodeset(replicas=1)

    assert told(world(one, HEAD, pod, CORDONED, revisions_=[R], slurm_=known)) == story


@pytest.mark.parametrize(
    ("crashed_for", "spared"),
    [
        pytest.param(
            timedelta(seconds=5), True, id="it may be back in a moment, and then waits for its turn"
        ),
        pytest.param(timedelta(minutes=1), False, id="it does not come back on its own"),
    ],
)
def test_a_crashed_worker_drains_beyond_the_budget_when_it_is_not_back_soon(crashed_for, spared):
    old = crashed(worker(0, revision="old", ready=False, unready_for=crashed_for))
    lost = slurm_node(old, "IDLE", reason="Not responding", reason_set_by="slurm")
    made = world(ONE, HEAD, old, revisions_=[revision_of(ONE)], slurm_=slurm(lost))

    [drain] = [action.write for action in planned(made).actions() if isinstance(action, WriteSlurm)]

    assert drain.over == {"Not responding"}
    assert drain.unless_in_use == spared
    assert planned(made).look_again == (timedelta(seconds=25) if spared else None)


@pytest.mark.parametrize(
    ("known", "grace"),
    [
        pytest.param(
            slurm(), None, id="Slurm does not know it: a slurmd that is up again waits for its jobs"
        ),
        pytest.param(slurm(OUR_DRAIN), 30, id="drained: none can have started"),
    ],
)
def test_a_crashed_worker_has_its_whole_grace_period_where_no_drain_stands(known, grace):
    asked = crashed(w(0, ready=False, terminating=True))
    [delete] = [
        action
        for action in planned(world(NONE, HEAD, DOWN, revisions_=[R], slurm_=known)).actions()
        if isinstance(action, DeleteWorker)
    ]

    assert delete.grace_seconds == grace
    assert told(world(NONE, HEAD, asked, revisions_=[R], slurm_=slurm())) == ["wait gpu-0: Terminating"]


@pytest.mark.parametrize(
    ("cause", "story"),
    [
        pytest.param("Update", ["wait gpu-0: OldAnswer"], id="its drain is all that keeps jobs away"),
        pytest.param("ScaleIn", ["Retired gpu-0", "forget gpu-0", "delete gpu-0 (Drained)"], id="slurmctld refuses under a job"),
    ],
)  # fmt: skip
def test_right_after_a_start_nobody_goes_whose_drain_another_operator_may_just_have_lifted(cause, story):
    old = worker(0, revision="old")
    spec = ONE if cause == "Update" else NONE
    known = slurm(slurm_node(old, "IDLE", "DRAIN", reason=ours(old, cause)))
    made = world(spec, HEAD, old, revisions_=[revision_of(spec)], slurm_=wire.replace(known, settles_at=NOW + timedelta(seconds=1)))  # fmt: skip

    assert told(made) == story
    assert planned(made).look_again == (timedelta(seconds=1) if cause == "Update" else None)


def test_proofs_are_of_the_pod_they_were_made_for():
    made = world(
        nodeset(replicas=0),
        HEAD,
        A,
        revisions_=[R],
        slurm_=slurm(slurm_node(A, "IDLE", "DRAIN", reason=ours(A, "ScaleIn"))),
    )
    [delete] = [action for action in planned(made).actions() if isinstance(action, DeleteWorker)]

    assert isinstance(delete.proof, Drained)
    assert delete.proof.pod_uid == A.metadata.uid
    assert not isinstance(delete.proof, NeverStarted)
