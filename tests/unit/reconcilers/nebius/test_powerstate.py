"""Which ephemeral workers run, by what Slurm waits for; and what is said of those that do not start."""

from datetime import UTC, datetime, timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import NodeSet, NodeSetPowerState, SlurmCluster
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import Meta, ObjectKey, OwnerReference
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
)
from slurm_operator.plan.actions import Create, DeleteObject, PatchObject, WriteSlurm
from slurm_operator.reconcilers.nebius.powerstate import RECONCILER
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState
from slurm_operator.slurm.writes import ExplainNodes, PowerNodes, ResumeNodes, UpdateJob
from testing import children
from testing.slurmclusters import carried_out, decide, manifest, read, report, settled, with_our_images, world

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = ObjectKey("ns", "gpu")
CLUSTER = with_our_images(manifest("SlurmCluster", "smallest"))
TIMED_OUT = "ResumeTimeout reached"


def nodeset(**changes):
    fields = {
        "spec__clusterName": "smallest", "spec__replicas": 5, "spec__ephemeralNodes": True,
        "spec__configMapRefSupervisord": "", "spec__configMapRefSshd": "", "spec__initialNumberEphemeralNodes": 1,
    }  # fmt: skip
    return manifest("NodeSet", "gpu", **{**fields, **changes})


def power(*active: int, **status):
    body = {
        "apiVersion": "slurm.nebius.ai/v1alpha1",
        "kind": "NodeSetPowerState",
        "metadata": {"name": "gpu"},
        "spec": {"nodeSetRef": "gpu", "activeNodes": list(active)},
        "status": status,
    }
    return read(body)


def pod(
    number: int,
    *,
    trouble: str = "",
    ready: bool = True,
    age=timedelta(minutes=10),
    ready_for=timedelta(seconds=5),
) -> Pod:
    owner = OwnerReference(
        api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="gpu", uid="uid-of-gpu", controller=True
    )
    running = ContainerState(running=ContainerStateRunning(started_at=NOW - age))
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="ImagePullBackOff", message=trouble))
    return Pod(
        metadata=Meta(
            name=f"gpu-{number}", namespace="ns", uid=f"pod-{number}", owner_references=[owner],
            creation_timestamp=NOW - age, labels={"nodeset.slinky.slurm.net/pod-hostname": f"gpu-{number}"},
        ),
        status=PodStatus(
            phase="Running" if ready else "Pending",
            pod_ip=f"10.0.0.{number}",
            conditions=(PodCondition(type="Ready", status="True" if ready else "False", last_transition_time=NOW - ready_for),),
            container_statuses=(ContainerStatus(name="slurmd", state=waiting if trouble else running),),
        ),
    )  # fmt: skip


def node(number: int, *words: str, reason: str = "", changed=timedelta(minutes=1), registered=False):
    return SlurmNode(
        name=f"gpu-{number}",
        state=NodeState.of(*(words or ("IDLE", "CLOUD", "POWERED_DOWN"))),
        address=f"10.0.0.{number}" if registered else f"gpu-{number}",
        slurmd_start_time=NOW - timedelta(minutes=5) if registered else None,
        reason=reason,
        reason_set_by="slurm" if reason == TIMED_OUT else "",
        reason_changed_at=NOW - changed if reason else None,
    )


def snapshot(*nodes: SlurmNode, jobs=(), asked=NOW) -> Snapshot:
    return Snapshot(
        nodes={one.name: one for one in nodes},
        jobs={one.job_id: one for one in jobs},
        jobs_by_node=jobs_by_node(jobs),
        nodes_asked_at=asked,
        jobs_asked_at=asked,
    )


def there_is(*things, slurm=None, set_=None, **part):
    there = settled(world(CLUSTER, set_ or nodeset()), (NodeSet, "gpu"), rounds=1)
    there.things = [thing for thing in there.things if not isinstance(thing, NodeSetPowerState)]
    there.things += things
    there.slurms[ObjectKey("ns", "smallest")] = slurm or snapshot(*(node(number) for number in range(5)))
    return there


def plan_of(there):
    return RECONCILER.decide(RECONCILER.observe(KEY, there), NOW)


def switched(there) -> list[int] | None:
    """What activeNodes become; None when they stay."""
    patches = [one for one in plan_of(there).actions() if isinstance(one, PatchObject)]
    return patches[0].operations[-1]["value"] if patches else None


def writes(there) -> list:
    return [one.write for one in plan_of(there).actions() if isinstance(one, WriteSlurm)]


def said(there) -> dict:
    seen = RECONCILER.observe(KEY, there)
    return children.report(RECONCILER, seen, RECONCILER.decide(seen, NOW))


UP, GOING_UP = ("IDLE", "CLOUD"), ("MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP")
FAILED, GIVEN = ("DOWN", "CLOUD", "POWERED_DOWN"), ("ALLOCATED", "CLOUD", "POWERED_DOWN")


@pytest.mark.parametrize(
    ("active", "record", "pods", "wanted"),
    [
        pytest.param([0], node(3), [], None, id="switched off: as it is"),
        pytest.param([0], node(3, *GOING_UP), [], [0, 3], id="Slurm waits, the call got lost: it starts"),
        pytest.param([0, 3], node(3, *GOING_UP), [], None, id="Slurm waits, the call arrived"),
        pytest.param([0], node(3, *GIVEN), [], [0, 3], id="off, with a job, and Slurm has no program to call: it starts"),
        pytest.param([0, 3], node(3, *GIVEN, registered=True), [pod(3)], None, id="off, and given a job: it stays"),
        pytest.param([0, 3], node(3, *UP, registered=True), [pod(3)], None, id="it is up"),
        pytest.param(
            [0, 3], node(3, *UP, "POWERED_DOWN", registered=True), [pod(3)], [0], id="switched off, call lost: it stops"
        ),
        pytest.param(
            [0, 3], node(3, *UP, "POWERING_DOWN", registered=True), [pod(3)], [0], id="about to be switched off"
        ),
        pytest.param(
            [0, 3], node(3, *UP, "POWERED_DOWN"), [pod(3)], None, id="its slurmd has not registered yet: it goes on"
        ),
        pytest.param(
            [0, 3], node(3, *FAILED, reason=TIMED_OUT), [pod(3, trouble="no such image", ready=False)], [0],
            id="it did not start: powered down, no orphan",
        ),
        pytest.param(
            [0, 3], node(3, *FAILED, reason=TIMED_OUT), [pod(3, ready=False, age=timedelta(seconds=9))], None,
            id="somebody tries again: it goes on",
        ),
        pytest.param(
            [0, 3], node(3, *UP, "POWERED_DOWN"), [pod(3, ready_for=timedelta(minutes=3))], [0],
            id="Slurm has forgotten who registered, and it was ready for long: it stops",
        ),
        pytest.param([0, 3], node(3, "DOWN", "CLOUD", "POWERED_DOWN", reason="bad disk"), [], None, id="a manual state"),
        pytest.param([0, 7], node(3), [], [0], id="beyond replicas"),
        pytest.param([-1, 0], node(3), [], [0], id="no ordinal"),
    ],
)  # fmt: skip
def test_which_numbers_run(active, record, pods, wanted):
    others = [node(number) for number in range(5) if number != 3]

    assert switched(there_is(power(*active), *pods, slurm=snapshot(record, *others))) == wanted


def test_nothing_is_switched_by_an_old_answer_or_none():
    old = snapshot(node(3, *GOING_UP), asked=NOW - timedelta(seconds=20))
    made = plan_of(there_is(power(0), slurm=old))
    assert [*made.actions()] == []
    assert made.waits_on == (ObjectKey("ns", "smallest"),), "Slurm is read again at once"
    assert made.look_again == timedelta(seconds=1)

    away = there_is(power(0), slurm=Unreachable(since=NOW, why="no answer"))
    assert switched(away) is None
    assert said(away)["Ready"][:2] == ("False", "SlurmUnreachable")


def test_a_number_beyond_replicas_is_dropped_while_slurm_is_away():
    assert switched(there_is(power(0, 7), slurm=Unreachable(since=NOW, why="no answer"))) == [0]


def test_a_patch_names_the_version_that_it_was_decided_about():
    [patch] = [
        one
        for one in plan_of(there_is(power(0), slurm=snapshot(node(3, *GOING_UP)))).actions()
        if isinstance(one, PatchObject)
    ]
    assert patch.operations[0] == {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}


STUCK = pod(3, trouble="manifest unknown", ready=False)
WHY = "pod gpu-3 cannot start container slurmd: ImagePullBackOff: manifest unknown"


def configuring(comment: str = "") -> SlurmJob:
    return SlurmJob(
        job_id=7, state=JobState.of("RUNNING", "CONFIGURING"), nodes=("gpu-3",), admin_comment=comment
    )


def test_the_owner_of_a_job_is_told_why_its_node_does_not_start():
    slurm = snapshot(node(3, *GOING_UP), jobs=[configuring("ticket 12")])
    there = there_is(power(0, 3), STUCK, slurm=slurm)

    assert writes(there) == [
        UpdateJob(job_id=7, admin_comment=f"ticket 12 | slurm-operator: gpu-3 does not start: {WHY}")
    ]
    assert said(there)["Ready"] == ("False", "WorkersNotStarting", f"gpu-3: {WHY}.")
    assert said(there)["nodeStates"]["3"]["message"] == WHY


def test_a_note_is_written_once_and_taken_back_when_the_node_is_up():
    note = f"slurm-operator: gpu-3 does not start: {WHY}"
    waiting = snapshot(node(3, *GOING_UP), jobs=[configuring(f"ticket 12 | {note}")])
    assert writes(there_is(power(0, 3), STUCK, slurm=waiting)) == []

    running = SlurmJob(
        job_id=7, state=JobState.of("RUNNING"), nodes=("gpu-3",), admin_comment=f"ticket 12 | {note}"
    )
    up = snapshot(node(3, "ALLOCATED", "CLOUD", registered=True), jobs=[running])
    assert writes(there_is(power(0, 3), pod(3), slurm=up)) == [UpdateJob(job_id=7, admin_comment="ticket 12")]


def test_a_young_pod_is_no_news():
    young = pod(3, trouble="manifest unknown", ready=False, age=timedelta(seconds=20))
    made = plan_of(there_is(power(3), young, slurm=snapshot(node(3, *GOING_UP), jobs=[configuring()])))

    assert [*made.actions()] == []
    assert made.look_again == timedelta(seconds=40)


def test_a_refused_pod_is_explained_by_its_part():
    there = there_is(power(3), slurm=snapshot(node(3, *GOING_UP), jobs=[configuring()]))
    refused = 'pods "gpu-3" is forbidden: exceeded quota: cpus'
    part = there.get(WorkerPart, "ns", "gpu")
    there.things = [thing for thing in there.things if thing is not part]
    conditions = [
        {"type": "Ready", "status": "False", "reason": "Scaling", "message": "on its way"},
        {"type": "Degraded", "status": "True", "reason": "Refused", "message": refused},
    ]
    body = {**codec.plain(part), "status": {"observedGeneration": 1, "conditions": conditions}}
    there.things.append(codec.read(WorkerPart, body))

    [write] = writes(there)
    assert f"no pod was made: {refused}" in write.admin_comment


def test_a_worker_that_did_not_start_says_why_and_rests_before_the_next_try():
    failed = node(3, *FAILED, reason=TIMED_OUT)
    there = there_is(power(0, 3), STUCK, slurm=snapshot(failed))
    explained = f"slurm-operator: PowerUpFailed: {WHY}"
    assert switched(there) == [0]
    assert writes(there) == [ExplainNodes(nodes=("gpu-3",), reason=explained, over=frozenset({TIMED_OUT}))]

    told = {"3": {"phase": "Pending", "message": WHY}}
    resting = node(3, *FAILED, reason=explained, changed=timedelta(minutes=1))
    there = there_is(power(0, nodeStates=told), slurm=snapshot(resting))
    made = plan_of(there)
    assert [*made.actions()] == []
    assert made.look_again == timedelta(minutes=4)
    assert said(there)["nodeStates"]["3"]["message"] == WHY, (
        "the pod is gone, what was wrong with it is known"
    )

    rested = node(3, *FAILED, reason=explained, changed=timedelta(minutes=6))
    assert writes(there_is(power(0), slurm=snapshot(rested))) == [
        ResumeNodes(nodes=("gpu-3",), over=frozenset({explained}), from_down=True)
    ]


@pytest.mark.parametrize(
    ("record", "write"),
    [
        pytest.param(node(3, "IDLE", "CLOUD", "NOT_RESPONDING"), PowerNodes, id="its pod was taken away: off"),
        pytest.param(node(3, "DOWN", "CLOUD", reason="Not responding"), PowerNodes, id="down: off"),
        pytest.param(node(3, "DOWN", "CLOUD", reason="bad disk"), None, id="a human set it down: left alone"),
        pytest.param(node(3, "DOWN", "CLOUD"), None, id="down without a reason is somebody's"),
        pytest.param(node(3, "IDLE", "DRAIN", "CLOUD", reason="bad disk"), None, id="a human drained it"),
        pytest.param(node(3, "MIXED", "CLOUD"), None, id="busy: a job may be there"),
        pytest.param(node(3, "IDLE", "CLOUD", "POWER_DOWN"), None, id="asked already"),
        pytest.param(
            node(3, "DOWN", "CLOUD", "POWERED_DOWN", reason="Not responding"), ResumeNodes, id="off and down: resumed"
        ),
        pytest.param(node(3, "DOWN", "CLOUD", "POWERED_DOWN", reason="bad disk"), None, id="off, a human's down"),
    ],
)  # fmt: skip
def test_a_number_that_nobody_wants_is_switched_off_in_slurm(record, write):
    found = writes(there_is(power(0), slurm=snapshot(record)))

    assert [type(one) for one in found] == ([write] if write is not None else [])


def test_what_a_power_state_says():
    slurm = snapshot(node(0, *UP, registered=True), node(3, *GOING_UP))
    there = there_is(power(0, 3), pod(0), pod(3, ready=False, age=timedelta(seconds=5)), slurm=slurm)
    told = said(there)

    assert told["activeCount"] == 2
    assert {number: state["phase"] for number, state in told["nodeStates"].items()} == {
        "0": "Running", "3": "Pending"
    }  # fmt: skip
    assert told["Ready"] == ("False", "ScalingInProgress", "1 worker is starting.")
    there = there_is(power(0), pod(0), slurm=snapshot(node(0, *UP, registered=True)))
    assert said(there)["Ready"] == ("True", "ActiveNodesReconciled", "1 of 5 workers run.")


def test_one_that_is_about_no_ephemeral_nodeset_is_left_alone():
    there = there_is(power(0, 7), set_=nodeset(spec__ephemeralNodes=False))

    assert [*plan_of(there).actions()] == []
    assert "no ephemeral nodes" in said(there)["Ready"][2]


# What the NodeSet makes of it


def part_after(there) -> WorkerPart:
    carried_out(there, decide(there, NodeSet, "gpu")[1])
    return there.get(WorkerPart, "ns", "gpu")


def running(*active: int, replicas: int = 5) -> WorkerPart:
    """The part of a NodeSet whose workers have started, with these numbers active."""
    there = there_is(power(*active), set_=nodeset(spec__replicas=replicas))
    part = there.get(WorkerPart, "ns", "gpu")
    there.things = [one for one in there.things if one is not part]
    there.things.append(with_spec(part, replicas=5, ordinals=[0]))
    return part_after(there)


def with_spec(part: WorkerPart, **fields) -> WorkerPart:
    return wire.replace(part, spec=wire.replace(part.spec, **fields))


def test_only_active_numbers_run_and_slurm_knows_all_of_them():
    part = running(0, 3)

    assert part.spec.ordinals == [0, 3]
    assert part.spec.replicas == 5
    assert list(part.spec.known_numbers) == [0, 1, 2, 3, 4]


def test_replicas_below_the_number_of_active_nodes_leave_the_lowest():
    part = running(0, 3, 4, replicas=4)

    assert (part.spec.ordinals, part.spec.replicas) == ([0, 3], 4)


def test_a_new_ephemeral_nodeset_gets_its_first_numbers():
    there = world(CLUSTER, nodeset(spec__initialNumberEphemeralNodes=2))
    made = [one.manifest for one in decide(there, NodeSet, "gpu")[1].actions() if isinstance(one, Create)]
    [state] = [one for one in made if one["kind"] == "NodeSetPowerState"]

    assert state["spec"] == {"nodeSetRef": "gpu", "activeNodes": [0, 1]}


def test_workers_that_run_go_on_when_their_nodeset_becomes_ephemeral():
    there = settled(world(CLUSTER, nodeset(spec__ephemeralNodes=False)), (NodeSet, "gpu"), rounds=1)
    old, part = there.get(NodeSet, "ns", "gpu"), there.get(WorkerPart, "ns", "gpu")
    there.things = [one for one in there.things if one is not old and one is not part]
    there.things += [read(nodeset()), with_spec(part, replicas=5, ordinals=[0, 1, 2, 3, 4])]
    made = [one.manifest for one in decide(there, NodeSet, "gpu")[1].actions() if isinstance(one, Create)]

    assert [one["spec"]["activeNodes"] for one in made if one["kind"] == "NodeSetPowerState"] == [
        [0, 1, 2, 3, 4]
    ]
    assert part_after(there).spec.ordinals == [0, 1, 2, 3, 4]


def test_the_power_state_goes_with_the_wish():
    there = there_is(set_=nodeset(spec__ephemeralNodes=False))
    owner = there.get(NodeSet, "ns", "gpu").metadata
    reference = {
        "apiVersion": "slurm.nebius.ai/v1alpha1", "kind": "NodeSet", "name": "gpu", "uid": owner.uid, "controller": True
    }  # fmt: skip
    body = {
        "apiVersion": "slurm.nebius.ai/v1alpha1", "kind": "NodeSetPowerState", "spec": {"nodeSetRef": "gpu"},
        "metadata": {"name": "gpu", "ownerReferences": [reference]},
    }  # fmt: skip
    there.things.append(read(body))
    found = [one for one in decide(there, NodeSet, "gpu")[1].actions() if isinstance(one, DeleteObject)]

    assert [one.kind for one in found] == [NodeSetPowerState.KIND]


def test_a_nodeset_without_its_cluster_still_says_how_its_workers_are():
    there = there_is(power(0, 3))
    there.things = [one for one in there.things if not isinstance(one, SlurmCluster)]

    told = report(there, NodeSet, "gpu")
    assert told["Ready"][1] == "ClusterNotFound"
    assert "PodsReady" in told
