"""How workers go: who never comes back, what is left alone, and in which order records and pods disappear."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.affinity import REQUIRED
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Meta
from slurm_operator.manifests.objects import (
    Affinity,
    NodeAffinity,
    NodeFieldRule,
    NodeSelector,
    NodeSelectorTerm,
)
from slurm_operator.plan.actions import Create, DeleteWorker, PatchObject
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.creation.pod import RESOURCES_DIGEST
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import (
    CONTROLLER,
    KEY,
    NOW,
    controller,
    job,
    line,
    machine,
    nodeset,
    ours,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    uid_of,
    worker,
    world,
)

HEAD = controller()
ONE = nodeset(replicas=1)
R = revision_of(ONE)
HASH = R.metadata.labels[names.LABEL_REVISION]


def w(ordinal, **kwargs):
    return worker(ordinal, **{"revision": HASH, **kwargs})


def seen(spec, *things, slurm_=None):
    return world(spec, HEAD, *things, revisions_=[revision_of(spec)], slurm_=slurm_)


A = w(0)
DELETED = w(0, terminating=True)
RETIRED = w(0, annotations={names.POD_RETIRED: uid_of("gpu-0")})


@pytest.mark.parametrize(
    ("pod", "node", "jobs", "story"),
    [
        pytest.param(DELETED, ["IDLE"], [], ["drain gpu-0 for PodTerminating"], id="deleted by hand: it takes no new job"),
        pytest.param(DELETED, ["MIXED", "DRAIN"], [job(1, "gpu-0")], ["wait gpu-0: Draining", "UpdateJob 1"], id="its drain is never lifted"),
        pytest.param(DELETED, ["IDLE", "DRAIN"], [], ["Leaving gpu-0", "delete gpu-0 (Drained)"], id="free: no need to wait out its grace period"),
        pytest.param(w(0, terminating=True, grace=30), ["IDLE", "DRAIN"], [], ["wait gpu-0: Terminating"], id="ending: asked once is enough"),
        pytest.param(w(0, terminating=True, grace=30), ["IDLE"], [], ["drain gpu-0 for PodTerminating"], id="ending, but Slurm would still use it"),
        pytest.param(RETIRED, ["IDLE", "DRAIN"], [], ["Retired gpu-0", "forget gpu-0", "delete gpu-0 (Drained)"], id="retired, then we were interrupted: goes on"),
        pytest.param(RETIRED, ["MIXED"], [job(1, "gpu-0")], ["drain gpu-0 for Retired"], id="retired, but resumed by somebody: through the gate again"),
    ],
)  # fmt: skip
def test_whoever_cannot_stay_goes_through_the_gate(pod, node, jobs, story):
    reason = ours(pod, "PodTerminating") if "DRAIN" in node else ""
    made = seen(ONE, pod, slurm_=slurm(slurm_node(pod, *node, reason=reason), jobs=jobs))

    assert told(made) == story


@pytest.mark.parametrize(
    ("node", "seconds", "behind", "story"),
    [
        pytest.param(["IDLE", "DRAIN"], 6, [], ["Retired gpu-0", "forget gpu-0", "delete gpu-0 (Drained)"], id="proved again right before its record goes"),
        pytest.param(["IDLE", "DRAIN"], 31, [], ["wait gpu-0: OldAnswer"], id="too long ago to be worth asking"),
        pytest.param(["IDLE", "DRAIN"], 6, ["gpu-0"], ["wait gpu-0: OldAnswer"], id="written to since"),
        pytest.param(["MIXED", "DRAIN"], 6, [], ["wait gpu-0: OldAnswer"], id="busy then"),
        pytest.param(["IDLE"], 6, [], ["wait gpu-0: OldAnswer"], id="not drained then"),
    ],
)  # fmt: skip
def test_an_answer_that_has_grown_old_is_only_good_for_what_is_proved_again(node, seconds, behind, story):
    reason = ours(A, "ScaleIn") if "DRAIN" in node else ""
    asked_at = NOW - timedelta(seconds=seconds)
    known = wire.replace(
        slurm(slurm_node(A, *node, reason=reason)),
        nodes_asked_at=asked_at,
        jobs_asked_at=asked_at,
        behind=frozenset(behind),
    )

    assert told(seen(nodeset(replicas=0), A, slurm_=known)) == story


def test_a_worker_that_keeps_its_record_goes_by_a_proof_that_is_made_again_too():
    asked_at = NOW - timedelta(seconds=6)
    record = slurm_node(DELETED, "IDLE", "DRAIN", reason=ours(DELETED, "PodTerminating"))
    known = wire.replace(slurm(record), nodes_asked_at=asked_at, jobs_asked_at=asked_at)

    _, action = planned(seen(ONE, DELETED, slurm_=known)).actions()

    assert isinstance(action, DeleteWorker)
    assert action.proof.asked_at == asked_at, "as old as it is: who deletes sees that, and asks again"


MARK = {names.POD_LEAVING: uid_of("gpu-0")}
MARKED = w(0, annotations=MARK)
MARKED_FOR_GOOD = w(0, annotations=MARK | {names.POD_RETIRED: uid_of("gpu-0")})
OUR_DRAIN = ours(MARKED, "ScaleIn")
A_DELETE_IS_VOID = "Stays gpu-0"


def marked_one(replicas, *words, pod=MARKED, jobs=(), reason=OUR_DRAIN, age=timedelta(0)):
    record = [slurm_node(pod, *words, reason=reason)] if words else []
    asked_at = NOW - age
    known = wire.replace(slurm(*record, jobs=jobs), nodes_asked_at=asked_at, jobs_asked_at=asked_at)
    return seen(nodeset(replicas=replicas), pod, slurm_=known)


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(marked_one(1, "IDLE", "DRAIN"), [A_DELETE_IS_VOID, "resume gpu-0"], id="it stays after all: nothing that was sent can meet it when it takes jobs again"),
        pytest.param(marked_one(1, "IDLE", reason=""), [A_DELETE_IS_VOID], id="somebody else has resumed it"),
        pytest.param(marked_one(1, "MIXED", "DRAIN", jobs=[job(1, "gpu-0")], reason="ask Ada"), [A_DELETE_IS_VOID], id="somebody else drains it"),
        pytest.param(marked_one(0, "IDLE", reason=""), ["drain gpu-0 for ScaleIn", A_DELETE_IS_VOID], id="it leaves, and somebody lifted the drain"),
        pytest.param(marked_one(0, "MIXED", "DRAIN", jobs=[job(1, "gpu-0")]), ["wait gpu-0: Draining", A_DELETE_IS_VOID], id="it leaves, and has a job"),
        pytest.param(marked_one(0, pod=MARKED_FOR_GOOD), ["wait gpu-0: UnknownToSlurm", A_DELETE_IS_VOID], id="its record is gone, and its pod is not: it registers again in the end"),
        pytest.param(seen(nodeset(replicas=0), MARKED, slurm_=Unreachable(since=NOW, why="?")), ["wait gpu-0: SlurmUnreachable", A_DELETE_IS_VOID], id="nobody can see its jobs"),
        pytest.param(marked_one(0, "MIXED", "DRAIN", jobs=[job(1, "gpu-0")], age=timedelta(seconds=6)), ["wait gpu-0: OldAnswer"], id="nobody can tell right now"),
        pytest.param(marked_one(0, "IDLE", "DRAIN", pod=MARKED_FOR_GOOD), ["forget gpu-0", "delete gpu-0 (Drained)"], id="it is free: once more"),
        pytest.param(marked_one(0, "IDLE", "DRAIN", pod=w(0, annotations=MARK, terminating=True, grace=30)), ["wait gpu-0: Terminating"], id="it was carried out"),
    ],
)  # fmt: skip
def test_a_delete_that_nobody_answered_is_void_before_a_job_can_come(made, story):
    assert told(made) == story


def test_nobody_is_resumed_before_the_write_was_answered_that_makes_a_delete_void():
    [lane] = [lane for lane in planned(marked_one(1, "IDLE", "DRAIN")).lanes if lane.name == "gpu-0"]

    assert [[line(action) for action in stage] for stage in lane.stages] == [
        [A_DELETE_IS_VOID],
        ["resume gpu-0"],
    ]


def test_the_write_that_makes_a_delete_void_changes_the_pod():
    """One that changes nothing would leave the version that the delete names."""
    plan = planned(marked_one(1, "IDLE", "DRAIN"))
    [void] = [a for a in plan.actions() if isinstance(a, PatchObject) and a.reason == "Stays"]

    path = "/metadata/annotations/nodeset.slinky.slurm.net~1leaving"
    assert void.operations == ({"op": "remove", "path": path},)


def test_a_retired_worker_is_not_counted_as_one_that_stays():
    two = nodeset(replicas=2)
    made = seen(two, RETIRED, w(1), w(2), slurm_=slurm(*(slurm_node(w(n), "IDLE") for n in range(3))))

    assert [line for line in told(made) if "gpu-1" in line or "gpu-2" in line] == []


@pytest.mark.parametrize(
    ("state", "reason", "story"),
    [
        pytest.param(["DOWN"], "bad disk, ask Ada", ["wait gpu-0: MarkedByOthers"], id="a human's"),
        pytest.param(["DOWN", "NOT_RESPONDING"], "Not responding", ["drain gpu-0 for ScaleIn"], id="slurmctld's own"),
    ],
)  # fmt: skip
def test_a_humans_note_on_a_node_that_does_not_drain_is_waited_for_and_not_replaced(state, reason, story):
    made = seen(nodeset(replicas=0), A, slurm_=slurm(slurm_node(A, *state, reason=reason)))

    assert told(made) == story


@pytest.mark.parametrize(
    ("state", "reason", "story"),
    [
        pytest.param(["DOWN"], "bad disk, ask Ada", ["wait gpu-0: MarkedByOthers"], id="a human's"),
        pytest.param(["IDLE"], "bad disk, ask Ada", ["wait gpu-0: MarkedByOthers"], id="a human's, in service"),
        pytest.param(["DOWN", "DRAIN"], "bad disk, ask Ada", ["Released gpu-0"], id="drained by them: it is free"),
        pytest.param(["DOWN", "NOT_RESPONDING"], "Not responding", ["drain gpu-0 for NodeCordon"], id="slurmctld's own"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("age", [timedelta(0), timedelta(seconds=15)], ids=["fresh", "a while ago"])
def test_a_cordon_says_what_it_waits_for_where_a_human_left_a_note(age, state, reason, story):
    """Else the drain would be refused in every pass, and `kubectl drain` would hang without a word."""
    known = slurm(slurm_node(A, *state, reason=reason))
    known = wire.replace(known, nodes_asked_at=NOW - age, jobs_asked_at=NOW - age)
    is_proof = "Released" in story[0]
    made = seen(ONE, A, machine("n1", cordoned=True), slurm_=known)

    assert told(made) == ([] if is_proof and age else story)


def test_marks_of_other_people_on_a_pod_are_not_written_over():
    pod = w(0, protected=True, annotations={names.POD_CORDON: "true", "team": "a"})
    made = seen(ONE, pod, slurm_=slurm(slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, "PodCordon"))))

    patch = next(planned(made).actions())

    assert isinstance(patch, PatchObject)
    assert patch.operations == (
        {"op": "remove", "path": "/metadata/labels/nodeset.slinky.slurm.net~1pod-protect"},
    )


FREED = w(0, protected=False)  # As on a cordoned machine, where it was drained and free.


@pytest.mark.parametrize(
    ("node", "reason", "jobs", "story"),
    [
        pytest.param(["IDLE"], "", [], ["drain gpu-0 for ScaleIn", "Protected gpu-0"], id="somebody resumed it: a job may start"),
        pytest.param(["MIXED"], "", [job(1, "gpu-0")], ["drain gpu-0 for ScaleIn", "Protected gpu-0"], id="a job has started"),
        pytest.param(["MIXED", "DRAIN"], ours(FREED, "ScaleIn"), [job(1, "gpu-0")], ["wait gpu-0: Draining", "Protected gpu-0"], id="and we drained it again"),
        pytest.param(["MIXED", "DRAIN"], "bad disk", [job(1, "gpu-0")], ["wait gpu-0: Draining", "Protected gpu-0"], id="or they did"),
        pytest.param(["IDLE", "COMPLETING", "DRAIN"], ours(FREED, "ScaleIn"), [], ["wait gpu-0: Draining", "Protected gpu-0"], id="its epilog runs"),
        pytest.param(["IDLE"], "bad disk, ask Ada", [], ["wait gpu-0: MarkedByOthers", "Protected gpu-0"], id="a human's note keeps us from draining it"),
        pytest.param(["IDLE", "DRAIN"], ours(FREED, "ScaleIn"), [], ["Retired gpu-0", "forget gpu-0", "delete gpu-0 (Drained)"], id="free: it goes as it is"),
    ],
)  # fmt: skip
def test_a_worker_that_leaves_is_protected_again_when_a_job_may_be_there(node, reason, jobs, story):
    made = seen(nodeset(replicas=0), FREED, slurm_=slurm(slurm_node(FREED, *node, reason=reason), jobs=jobs))

    assert told(made) == story


@pytest.mark.parametrize(
    ("pod", "known"),
    [
        pytest.param(w(0, protected=False, terminating=True), slurm(slurm_node(FREED, "MIXED"), jobs=[job(1, "gpu-0")]), id="it ends: no protection would help"),
        pytest.param(FREED, Unreachable(since=NOW, why="no answer"), id="nobody knows: it stays as it is"),
        pytest.param(FREED, slurm(), id="unknown to Slurm: as it is, too"),
    ],
)  # fmt: skip
def test_a_worker_that_leaves_is_not_protected_again_without_a_reason(pod, known):
    assert not [line for line in told(seen(nodeset(replicas=0), pod, slurm_=known)) if "rotected" in line]


def test_protection_that_the_spec_turns_off_is_taken_away():
    off = nodeset(replicas=1, workloadDisruptionProtection=False)

    assert told(seen(off, A, slurm_=slurm(slurm_node(A, "IDLE")))) == ["Unprotected gpu-0"]


def test_when_slurmctld_blinks_an_update_does_not_take_all_workers_for_broken():
    old, new = nodeset(replicas=4), nodeset(replicas=4, slurmd={"image": "slurmd:next"})
    hash_ = revision_of(old).metadata.labels[names.LABEL_REVISION]
    pods = [worker(n, revision=hash_, ready=False, unready_for=timedelta(seconds=2)) for n in range(4)]
    made = world(
        new, HEAD, *pods, revisions_=[revision_of(old), revision_of(new)], slurm_=slurm(*(slurm_node(p, "IDLE") for p in pods))
    )  # fmt: skip

    assert told(made) == []


def test_the_canarys_place_is_kept_until_its_successor_has_shown_that_it_works():
    """Between the canary's end and the new pod nobody of the new revision exists; no second one goes."""
    old, new = nodeset(replicas=4), nodeset(replicas=4, slurmd={"image": "slurmd:next"},
                                            updateStrategy={"rollingUpdate": {"maxUnavailable": "100%"}})  # fmt: skip
    hash_ = revision_of(old).metadata.labels[names.LABEL_REVISION]
    pods = [worker(n, revision=hash_) for n in range(3)]
    made = world(
        new, HEAD, *pods, revisions_=[revision_of(old), revision_of(new)], slurm_=slurm(*(slurm_node(p, "IDLE") for p in pods))
    )  # fmt: skip

    assert told(made) == ["create Pod gpu-3"]


BIGGER = nodeset(replicas=1, extraConf="CPUs=8", revisionHistoryLimit=5)
OLD = w(0, annotations={RESOURCES_DIGEST: "of-before"})


def bigger(*things, node=None, jobs=()):
    return world(
        BIGGER, HEAD, *things, revisions_=[R, revision_of(BIGGER)], slurm_=slurm(*([node] if node else []), jobs=jobs)
    )  # fmt: skip


STALE = slurm_node(OLD, "IDLE", "DRAIN", reason=ours(OLD, "Resources"))
NEW = worker(
    0, revision=revision_of(BIGGER).metadata.labels[names.LABEL_REVISION], annotations={RESOURCES_DIGEST: "x"}
)
INHERITED = slurm_node(NEW, "IDLE", "DRAIN", reason="slurm-operator: Resources: x (pod aaaa-bbbb)")


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(bigger(OLD, node=slurm_node(OLD, "IDLE")), ["drain gpu-0 for Resources"], id="first it drains, and the drain says why"),
        pytest.param(bigger(OLD, node=STALE), ["Leaving gpu-0", "delete gpu-0 (Drained)"], id="then the pod goes, the record stays"),
        pytest.param(bigger(node=STALE), ["forget gpu-0", "create Pod gpu-0"], id="then the record goes, and only then the new pod comes"),
        pytest.param(bigger(node=STALE, jobs=[job(1, words=["PENDING"], required=["gpu-0"])]), ["create Pod gpu-0"], id="a job waits for this very node: it would wait for ever"),
        pytest.param(bigger(OLD, node=slurm_node(OLD, "IDLE", "DRAIN", reason=ours(OLD, "Update"))), ["Retired gpu-0", "forget gpu-0", "delete gpu-0 (Drained)"], id="drained for something else: the record goes first, as a fence"),
        pytest.param(bigger(OLD, node=slurm_node(OLD, "IDLE", "DRAIN", reason="ask Ada")), ["Leaving gpu-0", "delete gpu-0 (Drained)"], id="a human's drain: the record stays"),
        pytest.param(bigger(NEW, node=INHERITED), ["Leaving gpu-0", "delete gpu-0 (Drained)"], id="came while Slurm was away and got the old record: once more"),
        pytest.param(bigger(NEW, node=INHERITED, jobs=[job(1, words=["PENDING"], required=["gpu-0"])]), ["resume gpu-0"], id="but not over and over"),
    ],
)  # fmt: skip
def test_a_worker_with_other_resources_gets_a_record_of_its_own(made, story):
    assert told(made) == story


def test_without_an_answer_from_slurm_new_workers_do_not_wait():
    made = bigger()
    made.slurms[CONTROLLER] = Unreachable(since=NOW, why="no answer")

    assert told(made) == ["create Pod gpu-0"]


def pinned(*things, to=None, **spec_):
    spec = nodeset(**{"replicas": 1, "pinToNode": True, **spec_})
    there = world(spec, HEAD, *things, revisions_=[revision_of(spec)])
    there.things[0] = type(spec)(
        metadata=spec.metadata, spec=spec.spec, status=type(spec.status)(ordinal_to_node=to or {"0": "n7"})
    )
    return there


TOLERATING = {"template": {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}}}


@pytest.mark.parametrize(
    ("made", "node"),
    [
        pytest.param(pinned(machine("n7")), "n7", id="the machine it was on before"),
        pytest.param(pinned(machine("n8")), None, id="that machine is gone: anywhere"),
        pytest.param(pinned(machine("n7", taints=[("x", "NoSchedule")])), None, id="it would never be scheduled there: anywhere"),
        pytest.param(pinned(machine("n7", taints=[("x", "NoSchedule")]), **TOLERATING), "n7", id="it tolerates what is there"),
        pytest.param(pinned(machine("n7", taints=[("node.kubernetes.io/not-ready", "NoSchedule")])), "n7", id="that passes: it waits for its machine"),
    ],
)  # fmt: skip
def test_a_pinned_worker_comes_back_where_it_was(made, node):
    [create] = planned(made).actions()
    affinity = create.manifest["spec"]["affinity"].get("nodeAffinity")
    tolerated = [t["key"] for t in create.manifest["spec"]["tolerations"]]

    assert "node.kubernetes.io/unschedulable" not in tolerated, "it is no daemon"
    if node is None:
        assert affinity is None
    else:
        [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


@pytest.mark.parametrize(
    ("asked_ago", "look_again"),
    [
        pytest.param(timedelta(seconds=1), None, id="fresh: a change in Slurm wakes us"),
        pytest.param(timedelta(seconds=9), timedelta(seconds=1), id="old: nothing would wake us"),
    ],
)
def test_an_old_answer_is_looked_at_again(asked_ago, look_again):
    made = seen(nodeset(replicas=0), A, slurm_=slurm(slurm_node(A, "MIXED", "DRAIN", reason=ours(A, "ScaleIn")), jobs=[job(1, "gpu-0")]))  # fmt: skip

    plan = RECONCILER.decide(RECONCILER.observe(KEY, made), NOW + asked_ago)

    assert plan.look_again == look_again
    assert plan.waits_on == (CONTROLLER,)


def test_an_idle_nodeset_with_min_ready_seconds_is_not_looked_at_over_and_over():
    spec = nodeset(replicas=1, minReadySeconds=10)
    pod = w(0, revision=revision_of(spec).metadata.labels[names.LABEL_REVISION])
    made = seen(spec, pod, slurm_=slurm(slurm_node(pod, "IDLE")))

    assert planned(made).look_again is None


def test_no_worker_is_pinned_to_where_another_number_is():
    there = pinned(w(0, on="n7"), machine("n7"), to={"0": "n7", "1": "n7"}, replicas=2)
    [create] = [action for action in planned(there).actions() if isinstance(action, Create)]

    assert create.manifest["metadata"]["name"] == "gpu-1"
    assert "nodeAffinity" not in create.manifest["spec"]["affinity"]


def bound(*things, on="", other=None, rule="In", **more):
    """gpu-0 was made for n7, and has no machine yet. `other` is there."""
    more = {"replicas": 1 if other is None else 2, "pinToNode": True, **more}
    spec = nodeset(**{name: value for name, value in more.items() if name != "to"})
    hash_ = revision_of(spec).metadata.labels[names.LABEL_REVISION]
    pod = worker(0, on=on, ready=False, started=False, phase="Pending", revision=hash_)
    labels = {**pod.metadata.labels, names.LABEL_POD_INDEX: "0"}
    named = NodeFieldRule(key="metadata.name", operator=rule, values=("n7",))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(named,)),))
    chosen = Affinity(
        node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    )
    pod = wire.replace(
        pod, metadata=wire.replace(pod.metadata, labels=labels), spec=wire.replace(pod.spec, affinity=chosen)
    )
    return pinned(
        pod, *([] if other is None else [worker(1, on="n7", revision=hash_, **other)]), *things, **more
    )


NAMED = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}]
}
BY_NAME = {"template": {"spec": {"affinity": {"nodeAffinity": {REQUIRED: NAMED}}}}}


@pytest.mark.parametrize(
    ("made", "goes"),
    [
        pytest.param(bound(machine("n7")), False, id="it waits for room there"),
        pytest.param(bound(machine("n7", cordoned=True)), False, id="it waits until it is uncordoned"),
        pytest.param(bound(), True, id="drained and taken out of the cluster"),
        pytest.param(bound(to={"9": "n9"}), True, id="which the status has forgotten by now"),
        pytest.param(bound(machine("n7"), to={"9": "n9"}), False, id="the status has forgotten one that is there"),
        pytest.param(bound(machine("n7", taints=[("x", "NoSchedule")])), True, id="for others from now on"),
        pytest.param(bound(machine("n7"), other={}), True, id="another number is there"),
        pytest.param(bound(machine("n7"), other={"terminating": True}), False, id="the other one leaves"),
        pytest.param(bound(rule="NotIn"), False, id="it may have any machine but that one"),
        pytest.param(bound(machine("n7"), other={}, oversubscribeNode=True), False, id="machines may be shared"),
        pytest.param(bound(machine("n7"), pinToNode=False), True, id="nobody wants it pinned any more"),
        pytest.param(bound(pinToNode=False, **BY_NAME), False, id="the template itself names it"),
        pytest.param(bound(on="n7"), False, id="it had been scheduled there"),
    ],
)  # fmt: skip
def test_a_worker_that_waits_for_a_machine_it_can_never_have_makes_room(made, goes):
    deleted = [line for line in told(made) if line.startswith("delete ")]

    assert deleted == (["delete gpu-0 (NeverStarted)"] if goes else [])


def test_where_machines_are_not_seen_a_worker_waits_for_its_own():
    made = bound()
    made.served.clear()

    assert told(made) == []


def test_the_volume_of_such_a_worker_stays():
    scratch = {"metadata": {"name": "scratch"}, "spec": {}}
    policy = {"whenScaled": "Delete"}
    made = bound(volumeClaimTemplates=[scratch], persistentVolumeClaimRetentionPolicy=policy)
    meta = Meta(name="scratch-gpu-0", namespace="ns", uid="claim", resource_version="3")
    made.children_[kinds.PERSISTENT_VOLUME_CLAIM] = [Child(metadata=meta, body={})]

    assert told(made) == ["delete gpu-0 (NeverStarted)"]


OLD_NAME = {"hostname": "old-0", "revision": "before"}
HOST_NETWORK = {"template": {"spec": {"hostNetwork": True}}}
TAKEN_ALONG = ["Retired gpu-0", "forget old-0", "delete gpu-0 (Drained)"]


@pytest.mark.parametrize(
    ("spec", "pod", "cause", "story"),
    [
        pytest.param({"template": {"spec": {"hostname": "new-"}}}, w(0, **OLD_NAME), "Update", TAKEN_ALONG, id="another host name"),
        pytest.param(HOST_NETWORK, w(0, **OLD_NAME), "Update", TAKEN_ALONG, id="it will be called like its machine"),
        pytest.param({"ordinalPadding": 3}, w(0, revision="before"), "Update", ["Retired gpu-0", "forget gpu-0", "delete gpu-0 (Drained)"], id="more digits"),
        pytest.param({"template": {"spec": {"hostname": "old-"}}}, w(0, **OLD_NAME), "Update", ["Leaving gpu-0", "delete gpu-0 (Drained)"], id="the same name: the next one has its record"),
        pytest.param({"template": {"spec": {"hostname": "new-"}}}, w(0, **OLD_NAME, terminating=True), "PodTerminating", TAKEN_ALONG, id="deleted by hand"),
    ],
)  # fmt: skip
def test_a_worker_whose_number_gets_another_name_takes_its_record_along(spec, pod, cause, story):
    made_as = pod.spec.hostname.rpartition("-")[0]
    node = slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, cause), features=(made_as,))

    assert told(seen(nodeset(replicas=1, **spec), pod, slurm_=slurm(node))) == story
