"""What the conditions of a Kubernetes node become, and when it is deleted."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import KubeNodeSpec
from slurm_operator.plan.actions import DeleteObject
from slurm_operator.reconcilers.nebius.kubenode import is_only_a_heartbeat
from slurm_operator.reconcilers.nebius.kubenode.options import NodeOptions
from slurm_operator.reconcilers.nebius.kubenode.troubles import REBOOT_REASON, REPLACEMENT_REASON
from testing.kube_nodes import (
    NOW,
    World,
    condition,
    deletions,
    kube_node,
    pod,
    slurm_node,
    waits,
    wanted,
    writes,
)

CALL, SUSPECTED = names.MAINTENANCE_SCHEDULED, names.HARDWARE_SUSPECTED
MAINTENANCE, DEGRADED, DRAIN, REBOOT = names.MAINTENANCE, names.DEGRADED, names.DRAIN, names.REBOOT
ON, OFF, UNKNOWN = "True", "False", "Unknown"
IDLE, BUSY, DRAINED, DRAINING, DOWN = "idle", "busy", "drained", "draining", "down"
HOUR = timedelta(hours=1)
EARLIER, LATER = NOW - HOUR, NOW + HOUR

BEGINS = {MAINTENANCE: (ON, names.DRAINING)}
ENDS = {MAINTENANCE: (OFF, names.UNDRAINED)}
EMPTY_IT = {DRAIN: (ON, names.NEED_DRAIN)}
STOP = {DRAIN: (OFF, names.UNDRAINED)}
NOT_NOW = {DRAIN: (OFF, names.CANCELLED)}
REBOOT_IT = {REBOOT: (ON, names.NEED_REBOOT)}
REBOOTED = {REBOOT: (OFF, names.REBOOTED), DEGRADED: (OFF, names.REBOOTED)}

CASES = [
    # conditions (status, reason, since); the worker; what becomes of conditions
    ([], IDLE, {}),
    ([], DRAINED, {}),
    # 5.4: maintenance is called for
    ([(CALL, ON)], BUSY, {}),
    ([(CALL, ON)], DRAINING, {}),
    ([(CALL, ON)], DRAINED, BEGINS),
    ([(SUSPECTED, ON)], DRAINED, {**BEGINS, **EMPTY_IT}),
    ([(CALL, ON)], DOWN, {}),
    ([(CALL, ON)], None, {}),
    ([(CALL, UNKNOWN)], DRAINED, {}),
    ([(CALL, UNKNOWN), (MAINTENANCE, ON)], DRAINED, EMPTY_IT),
    ([(CALL, ON), (MAINTENANCE, UNKNOWN)], DRAINED, {}),
    ([(CALL, OFF), (MAINTENANCE, ON)], DRAINED, {**ENDS, **EMPTY_IT}),
    ([(MAINTENANCE, ON), (DRAIN, ON, names.NEED_DRAIN)], DRAINED, ENDS),
    ([(MAINTENANCE, ON), (DRAIN, ON, names.NEED_DRAIN)], None, ENDS),
    # 5.5: emptied
    ([(CALL, ON), (MAINTENANCE, ON)], DRAINED, EMPTY_IT),
    ([(CALL, ON), (MAINTENANCE, ON)], BUSY, {}),
    ([(CALL, ON), (MAINTENANCE, ON)], None, EMPTY_IT),
    ([(CALL, ON), (MAINTENANCE, ON), (DRAIN, UNKNOWN)], DRAINED, {}),
    ([(CALL, ON), (MAINTENANCE, ON), (DRAIN, ON, names.NEED_DRAIN)], DRAINED, {}),
    ([(CALL, ON), (MAINTENANCE, ON), (DRAIN, ON, names.NEED_DRAIN)], BUSY, NOT_NOW),
    ([(CALL, ON), (MAINTENANCE, ON), (DRAIN, ON, names.DRAINING)], DRAINED, {}),
    ([(CALL, ON), (MAINTENANCE, ON), (DRAIN, ON, names.DRAINING)], BUSY, {}),
    ([(CALL, ON), (MAINTENANCE, ON), (DRAIN, ON, names.DRAINED)], None, {}),
    ([(SUSPECTED, ON)], None, {}),
    ([(DRAIN, ON, names.DRAINED)], None, STOP),
    ([(DRAIN, ON, names.DRAINING)], DRAINED, STOP),
    ([(DRAIN, ON, names.NEED_DRAIN)], DRAINED, STOP),
    ([(DRAIN, ON, names.DRAINED), (MAINTENANCE, UNKNOWN)], None, {}),
    ([(DRAIN, ON, names.DRAINED), (SUSPECTED, UNKNOWN)], None, {}),
    ([(DRAIN, ON, names.DRAINING), (REBOOT, ON, names.NEED_REBOOT), (DEGRADED, ON)], DRAINED, {}),
    ([(DRAIN, ON, names.DRAINED), (REBOOT, ON, names.REBOOTING), (DEGRADED, ON)], None, {}),
    ([(DRAIN, ON, names.DRAINED), (REBOOT, UNKNOWN)], None, {}),
    # 5.5: rebooted
    ([(DEGRADED, ON)], DRAINED, REBOOT_IT),
    ([(DEGRADED, ON)], None, REBOOT_IT),
    ([(DEGRADED, ON)], BUSY, {}),
    ([(DEGRADED, UNKNOWN)], DRAINED, {}),
    ([(DEGRADED, ON, "", LATER), (REBOOT, OFF, "", EARLIER)], DRAINED, REBOOT_IT),
    ([(DEGRADED, ON, "", EARLIER), (REBOOT, OFF, "", LATER)], DRAINED, {}),
    ([(DEGRADED, ON), (REBOOT, UNKNOWN)], DRAINED, {}),
    ([(DEGRADED, ON), (REBOOT, ON, names.NEED_REBOOT)], DRAINED, {}),
    ([(DEGRADED, ON), (REBOOT, ON, names.NEED_REBOOT)], BUSY, {REBOOT: (OFF, names.CANCELLED)}),
    ([(DEGRADED, ON), (REBOOT, ON, names.REBOOTING)], BUSY, {}),
    ([(DEGRADED, ON), (CALL, ON), (MAINTENANCE, ON)], DRAINED, EMPTY_IT),
    ([(DEGRADED, ON), (REBOOT, ON, names.REBOOTED)], DRAINED, REBOOTED),
    ([(DEGRADED, ON), (REBOOT, ON, names.REBOOTED)], BUSY, REBOOTED),
    (
        [(DEGRADED, ON), (REBOOT, ON, names.REBOOTED), (DRAIN, ON, names.UNDRAINED)],
        DRAINED,
        {**REBOOTED, DRAIN: (OFF, names.REBOOTED)},
    ),
    (
        [(DEGRADED, ON), (REBOOT, ON, names.REBOOTED), (DRAIN, ON, names.DRAINED), (CALL, ON), (MAINTENANCE, ON)],
        None,
        REBOOTED,
    ),
    (
        [(DEGRADED, ON, "", LATER), (REBOOT, ON, names.REBOOTED, EARLIER)],
        DRAINED,
        {REBOOT: (OFF, names.REBOOTED)},
    ),
]  # fmt: skip


def sentence(case) -> str:
    conditions, worker, wishes = case
    told = ", ".join(" ".join(str(part) for part in one[:3] if part) for one in conditions) or "no condition"
    return f"{told} | {worker or 'no worker'} -> {wishes or 'nothing'}"


def world(conditions, worker, **options) -> World:
    marks = [condition(one[0], one[1], *one[2:]) for one in conditions]
    there = World(options=NodeOptions(**options)).add(kube_node("n0", *marks), *(["cpu-0"] if worker else []))
    match worker:
        case "drained":
            there.drained("cpu-0", "grace: new disks")
        case "draining":
            there.drained("cpu-0", "grace: new disks")
            there.runs("cpu-0")
        case "busy":
            there.runs("cpu-0")
        case "down":
            there.records["cpu-0"] = slurm_node(there.pods["cpu-0"], "DOWN", "NOT_RESPONDING")
    return there


@pytest.mark.parametrize("case", CASES, ids=sentence)
def test_what_becomes_of_the_conditions(case):
    conditions, worker, wishes = case

    assert wanted(world(conditions, worker).decide()[1]) == wishes


@pytest.mark.parametrize("case", CASES, ids=sentence)
def test_while_slurm_does_not_answer_nothing_is_asked_for_on_its_behalf(case):
    conditions, worker, _ = case
    there = world(conditions, worker)
    there.unreachable = "timed out"
    asked = {type_ for type_, (status, _) in wanted(there.decide()[1]).items() if status == ON}

    assert worker is None or not asked


def test_an_old_answer_of_slurm_is_no_answer():
    there = world([(CALL, ON)], DRAINED)
    assert wanted(there.decide()[1]) == BEGINS
    there.asked_at = there.now - timedelta(minutes=1)
    _, plan = there.decide()

    assert wanted(plan) == {}
    assert plan.waits_on, "it is read again"


@pytest.mark.parametrize(("reason", "is_marked"), [(REBOOT_REASON, True), ("Kill task failed", False)])
def test_a_node_is_degraded_when_its_workers_are_drained_for_the_reboot(reason, is_marked):
    there = world([], IDLE).drained("cpu-0", reason)

    assert (DEGRADED in wanted(there.decide()[1])) == is_marked


def test_conditions_are_left_alone_by_rules_that_are_off():
    conditions = [(CALL, ON), (MAINTENANCE, ON)]
    assert wanted(world(conditions, DRAINED, follows_conditions=False).decide()[1]) == {}
    assert wanted(world([(CALL, ON)], DRAINED, follows_slurm=False).decide()[1]) == {}
    assert wanted(world(conditions, DRAINED, follows_slurm=False).decide()[1]) == EMPTY_IT


def test_another_condition_may_call_for_maintenance():
    conditions = [("MaintenanceScheduled", ON)]
    assert wanted(world(conditions, DRAINED).decide()[1]) == {}
    assert (
        wanted(world(conditions, DRAINED, maintenance_condition="MaintenanceScheduled").decide()[1]) == BEGINS
    )


def test_nodes_with_an_ignored_label_are_not_emptied_but_rebooted():
    label = {"slurm.nebius.ai/nodeset": "nfs"}
    for conditions, wishes in (
        ([(CALL, ON), (MAINTENANCE, ON)], {}),
        ([(DEGRADED, ON)], REBOOT_IT),
    ):
        there = World(options=NodeOptions(ignored_labels=label))
        marks = [condition(*one) for one in conditions]
        there.add(kube_node("n0", *marks, labels=label), "cpu-0").drained("cpu-0", "grace: new disks")
        assert wanted(there.decide()[1]) == wishes


def test_nodes_without_workers_are_none_of_our_business():
    for type_ in (CALL, SUSPECTED):
        there = world([(type_, ON)], None, deletes_drained=True, deletes_not_ready=True, replaces=True)
        _, plan = there.decide()
        assert not list(plan.actions())
    lost = world([("Ready", UNKNOWN)], None, deletes_not_ready=True)
    assert not list(lost.decide()[1].actions())


def test_a_worker_of_another_api_beside_ours_keeps_the_node():
    """Nobody here can tell what runs in it."""
    there = world([(CALL, ON), (MAINTENANCE, ON)], DRAINED, deletes_drained=True)
    there.pods["other"] = pod("other", "n0", nodeset="of-another-api")
    _, plan = there.decide()

    assert wanted(plan) == {}
    assert "other is no worker of a SlurmCluster" in waits(plan)["Draining"]


def test_the_patch_is_about_one_version_and_keeps_the_time_of_a_status_that_stays():
    there = world([(CALL, ON), (MAINTENANCE, ON), (DRAIN, ON, names.NEED_DRAIN)], BUSY)
    [patch] = [one for one in there.decide()[1].actions() if type(one).__name__ == "PatchObject"]

    assert (patch.kind, patch.subresource, patch.uid) == (
        kinds.KUBE_NODE,
        "status",
        there.nodes["n0"].metadata.uid,
    )
    assert patch.operations[0] == {"op": "test", "path": "/metadata/resourceVersion", "value": "1"}
    assert patch.operations[1]["value"]["lastTransitionTime"] == "2026-01-01T12:00:00Z"


def test_only_news_wakes():
    before = kube_node("n0", condition(CALL, OFF))
    after = kube_node("n0", condition(CALL, ON))
    assert is_only_a_heartbeat(before, before)
    assert not is_only_a_heartbeat(before, after)
    assert not is_only_a_heartbeat(before, wire.replace(before, spec=KubeNodeSpec(unschedulable=True)))


# ---- Deletion: off, unless a flag asks for it

EMPTIED = [(CALL, ON), (MAINTENANCE, ON), (DRAIN, ON, names.DRAINED)]
DELETIONS = [
    # conditions, worker, flags, deleted
    (EMPTIED, None, {"deletes_drained": True}, True),
    (EMPTIED, None, {}, False),
    (EMPTIED, None, {"deletes_not_ready": True}, False),
    (EMPTIED, None, {"deletes_drained": True, "follows_conditions": False}, False),
    (EMPTIED, DRAINED, {"deletes_drained": True}, True),
    (EMPTIED, BUSY, {"deletes_drained": True}, False),
    (EMPTIED, DRAINING, {"deletes_drained": True}, False),
    (EMPTIED, IDLE, {"deletes_drained": True}, False),
    ([*EMPTIED[:2], (DRAIN, ON, names.DRAINING)], None, {"deletes_drained": True}, False),
    (EMPTIED[1:], None, {"deletes_drained": True}, False),
    ([(CALL, UNKNOWN), *EMPTIED[1:]], None, {"deletes_drained": True}, False),
    ([(CALL, ON), (MAINTENANCE, UNKNOWN), EMPTIED[2]], None, {"deletes_drained": True}, False),
    ([(CALL, ON), EMPTIED[2]], None, {"deletes_drained": True}, False),
    # Not ready
    ([("Ready", OFF)], DOWN, {"deletes_not_ready": True}, True),
    ([("Ready", UNKNOWN)], DOWN, {"deletes_not_ready": True}, True),
    ([("Ready", UNKNOWN)], DRAINED, {"deletes_not_ready": True}, True),
    ([("Ready", UNKNOWN)], DOWN, {}, False),
    ([("Ready", UNKNOWN)], DOWN, {"deletes_drained": True}, False),
    ([("Ready", ON)], DOWN, {"deletes_not_ready": True}, False),
    ([("Ready", UNKNOWN, "", None)], DOWN, {"deletes_not_ready": True}, False),
    ([("Ready", UNKNOWN, "", NOW - timedelta(minutes=14))], DOWN, {"deletes_not_ready": True}, False),
    ([("Ready", UNKNOWN, "", NOW - timedelta(minutes=15))], DOWN, {"deletes_not_ready": True}, True),
    ([("Ready", UNKNOWN)], BUSY, {"deletes_not_ready": True}, False),
    ([("Ready", UNKNOWN)], IDLE, {"deletes_not_ready": True}, False),
    ([("Ready", UNKNOWN)], None, {"deletes_not_ready": True}, False),
]


@pytest.mark.parametrize(
    "case",
    DELETIONS,
    ids=lambda case: f"{sentence((case[0], case[1], case[3]))} with {', '.join(case[2]) or 'no flag'}",
)
def test_which_node_is_deleted(case):
    conditions, worker, options, is_deleted = case
    there = world(conditions, worker, **options)

    assert deletions(there.decide()[1]) == (["n0"] if is_deleted else [])
    there.unreachable = "timed out"
    assert worker is None or not deletions(there.decide()[1])
    there.unreachable, there.asked_at = "", there.now - timedelta(minutes=1)
    assert worker is None or not deletions(there.decide()[1])


def test_a_node_that_may_be_lost_is_looked_at_when_its_time_is_up():
    there = world([("Ready", UNKNOWN, "", NOW - timedelta(minutes=14))], DOWN, deletes_not_ready=True)

    assert there.decide()[1].look_again == timedelta(minutes=1)


def test_no_other_action_deletes_a_node():
    with pytest.raises(ValueError, match="only ever deleted by DeleteKubeNode"):
        DeleteObject(kind=kinds.KUBE_NODE, key=("", "n0"), uid="1", reason="A", message="b")


# ---- The brake


def broken(count: int, *conditions, workers: int = 10, **options) -> World:
    """So many of ten Kubernetes nodes have these conditions."""
    there = World(options=NodeOptions(**options))
    for number in range(workers):
        marks = conditions if number < count else ()
        there.add(kube_node(f"n{number}", *marks), f"cpu-{number}")
    return there


BRAKES = [
    # what happens to each, how many of ten, whether the brake is on
    ("maintenance", 2, False),
    ("maintenance", 3, True),
    ("kill task", 2, False),
    ("kill task", 3, True),
    ("hardware", 2, False),
    ("hardware", 3, True),
    ("not ready", 2, False),
    ("not ready", 3, True),
]


@pytest.mark.parametrize(("what", "count", "is_on"), BRAKES)
def test_more_than_a_fifth_of_a_nodeset_asks_a_person(what, count, is_on):
    marks = {"maintenance": [condition(CALL)], "not ready": [condition("Ready", UNKNOWN)]}.get(what, [])
    there = broken(count, *marks, replaces=True, deletes_not_ready=True)
    for number in range(count):
        name = f"cpu-{number}"
        if what == "kill task":
            there.drained(name, "Kill task failed")
        if what == "hardware":
            there.drained(name, "[node_problem] gpus: job 7")
        if what == "not ready":
            there.records[name] = slurm_node(there.pods[name], "DOWN", "NOT_RESPONDING")
    _, plan = there.decide()
    begun = bool(writes(plan)) or bool(deletions(plan)) or SUSPECTED in wanted(plan)

    assert begun == (not is_on)
    assert ("BrakeOn" in waits(plan)) == is_on
    assert (wanted(plan).get(names.BRAKED) == (ON, names.BRAKE_ON)) == is_on
    assert (plan.look_again is not None) == is_on


def test_the_brake_says_whom_it_is_about_and_how_to_answer():
    text = waits(broken(3, condition(CALL)).decide()[1])["BrakeOn"]

    assert "3 of 10 workers of NodeSet cpu within 1h; 2 may be (cpu-0, cpu-1, cpu-2)" in text
    assert (
        "kubectl annotate --overwrite node n0 n1 n2 slurm.nebius.ai/brake-release=$(date -u +%FT%TZ)" in text
    )


def test_a_person_releases_some_nodes_and_the_others_go_on_as_before():
    there = broken(5, condition(CALL))
    for number in range(4):
        there.annotate(f"n{number}", brake_release=f"{NOW:%Y-%m-%dT%H:%M:%SZ}")
    there.passes()

    assert [name for name, one in there.records.items() if one.reason] == [f"cpu-{n}" for n in range(4)]
    assert "after 4 within 1h" in waits(there.decide("n4")[1])["BrakeOn"]


@pytest.mark.parametrize(
    ("said", "is_released"),
    [
        (f"{NOW:%Y-%m-%dT%H:%M:%SZ}", True),
        (f"{NOW - timedelta(minutes=59):%Y-%m-%dT%H:%M:%SZ}", True),
        (f"{NOW - timedelta(minutes=61):%Y-%m-%dT%H:%M:%SZ}", False),
        (f"{NOW + timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}", False),
        ("2026-01-01T12:00:00", False),
        ("yes", False),
        ("", False),
    ],
)
def test_a_release_counts_for_the_window(said, is_released):
    there = broken(3, condition(CALL))
    there.annotate("n0", brake_release=said)

    assert bool(writes(there.decide("n0")[1])) == is_released


def test_one_after_the_other_is_too_many_as_well_until_the_window_is_over():
    there = broken(0)
    for number in range(2):
        there.says(f"n{number}", CALL)
        there.passes()
    there.says("n2", CALL)
    there.passes()
    assert there.records["cpu-2"].reason == ""
    assert there.mark("n2", names.BRAKED) == (ON, names.BRAKE_ON)

    there.now += timedelta(hours=1)
    there.passes()
    assert there.records["cpu-2"].reason == REPLACEMENT_REASON
    assert there.mark("n2", names.BRAKED) == (OFF, names.BRAKE_OFF)


def test_what_was_begun_before_the_brake_goes_on():
    there = broken(1, condition(CALL)).passes()
    for number in range(1, 5):
        there.says(f"n{number}", CALL)
    there.passes()
    assert there.mark("n0", DRAIN) == (ON, names.NEED_DRAIN)
    there.says("n0", CALL, OFF)
    there.passes()

    assert there.records["cpu-0"].reason == ""


def test_nodes_that_were_rebooted_within_the_window_count():
    there = broken(2, condition(DEGRADED, OFF, since=NOW - timedelta(minutes=5)))
    there.drained("cpu-5", "Kill task failed")

    assert "after 2 within 1h" in waits(there.decide("n5")[1])["BrakeOn"]


def test_workers_that_people_drained_do_not_count():
    there = broken(5, condition(CALL))
    for number in range(4):
        there.drained(f"cpu-{number}", "grace: new disks")

    assert writes(there.decide("n4")[1])


def test_the_brake_stays_on_while_slurm_does_not_answer():
    there = broken(3, condition(CALL)).passes()
    there.unreachable = "timed out"
    there.passes()

    assert there.mark("n0", names.BRAKED) == (ON, names.BRAKE_ON)


@pytest.mark.parametrize(("percent", "is_on"), [(0, True), (10, False)])
def test_the_share_can_be_chosen(percent, is_on):
    options = NodeOptions()
    brake = type(options.brake)(percent, timedelta(hours=1))

    assert ("BrakeOn" in waits(broken(1, condition(CALL), brake=brake).decide()[1])) == is_on
