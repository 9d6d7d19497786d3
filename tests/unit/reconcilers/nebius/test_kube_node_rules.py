"""What is done about each worker of a Kubernetes node, by its reason in Slurm and the conditions there."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.manifests.objects import KubeNodeSpec
from slurm_operator.reconcilers.nebius.kubenode.options import NodeOptions
from slurm_operator.reconcilers.nebius.kubenode.rules import RULES, Do, Step, steps
from slurm_operator.reconcilers.nebius.kubenode.troubles import (
    REBOOT_REASON,
    REPLACEMENT_REASON,
    Trouble,
    is_well_formed,
    trouble,
)
from slurm_operator.slurm.writes import DrainNodes, ResumeNodes
from testing.kube_nodes import (
    LONG_AGO,
    NOW,
    World,
    condition,
    kube_node,
    pod,
    slurm_node,
    waits,
    wanted,
    writes,
)

CALL = names.MAINTENANCE_SCHEDULED
HOUR = timedelta(hours=1)

TROUBLES = [
    # reason, set by, trouble
    ("Kill task failed", "root", Trouble.KILL_TASK_FAILED),
    ("Kill task failed : Not responding", "slurm", Trouble.KILL_TASK_FAILED),
    ("Kill task failed", "grace", None),
    ("Kill task failed, says Grace", "root", None),
    ("grace: Kill task failed", "root", None),
    (REPLACEMENT_REASON, "root", Trouble.REPLACEMENT),
    (REPLACEMENT_REASON + " : Not responding", "slurm", Trouble.REPLACEMENT),
    ("[node_problem] compute_maintenance: node replacement process", "root", Trouble.REPLACEMENT),
    (REBOOT_REASON, "slurm", Trouble.REBOOT),
    ("[node_problem] compute_maintenance: node reboot process", "root", Trouble.REBOOT),
    ("[node_problem] gpus: job 7 [slurm_job]", "slurm", Trouble.NODE_PROBLEM),
    ("[user_problem] pod_ephemeral_storage nearly full", "slurm", Trouble.STORAGE),
    ("[user_problem] pod_ephemeral_storage nearly full", "grace", None),
    ("[user_problem] boot_disk_full: 99 % [prolog]", "root", Trouble.USER_PROBLEM),
    ("[hardware_problem] extensive-check: job 7 [slurm_job]", "root", Trouble.HARDWARE_PROBLEM),
    ("[node_problem] gpus: I looked at it myself", "grace", None),
    ("see [node_problem] gpus", "root", None),
    ("slurm-operator: ScaleIn: leaving", "slurm", None),
    ("new disks", "root", None),
    ("", "", None),
]


@pytest.mark.parametrize(("reason", "set_by", "found"), TROUBLES)
def test_whose_word_a_reason_is(reason, set_by, found):
    record = slurm_node(pod("cpu-0", "n0"), "IDLE", "DRAIN", reason=reason, reason_set_by=set_by)

    assert trouble(record) is found
    assert trouble(slurm_node(pod("cpu-0", "n0"), "IDLE", reason=reason, reason_set_by=set_by)) is None


@pytest.mark.parametrize(
    ("reason", "is_good"),
    [
        ("[node_problem] gpus: job 7 [slurm_job]", True),
        ("[node_problem] Failed gpus: job 7", True),
        ("[node_problem] gpus", False),
        ("[node_problem]gpus: a", False),
        ("[node_problem] : a", False),
        ("[node_problem] gpus:", False),
    ],
)
def test_a_node_problem_names_its_check(reason, is_good):
    assert is_well_formed(reason) == is_good


def world(*conditions, options=None, **node):
    return World(options=options or NodeOptions()).add(kube_node("n0", *conditions, **node), "cpu-0")


def done(there: World, name: str = "cpu-0") -> Step:
    seen, _ = there.decide()
    [step] = [one for one in steps(seen) if one.worker.slurm_node == name]
    return step


ON, OFF, UNKNOWN = "True", "False", "Unknown"
EARLIER, LATER = NOW - HOUR, NOW + HOUR

# reason of the worker, drained at NOW; conditions of its Kubernetes node; what is done
CASES = [
    # Nobody asks for anything
    ("", [], Do.LEAVE),
    ("new disks", [], Do.LEAVE),
    ("[user_problem] disk: full", [], Do.LEAVE),
    # Scan A: maintenance or suspected hardware
    ("", [(CALL, ON)], Do.DRAIN_FOR_REPLACEMENT),
    ("", [(names.HARDWARE_SUSPECTED, ON)], Do.DRAIN_FOR_REPLACEMENT),
    ("", [(CALL, OFF)], Do.LEAVE),
    ("", [(CALL, UNKNOWN)], Do.LEAVE),
    ("", [(CALL, UNKNOWN), (names.HARDWARE_SUSPECTED, ON)], Do.DRAIN_FOR_REPLACEMENT),
    ("new disks", [(CALL, ON)], Do.LEAVE),
    ("[user_problem] disk: full", [(CALL, ON)], Do.LEAVE),
    ("slurm-operator: Cordoned: n0", [(CALL, ON)], Do.LEAVE),
    # Scan B: replacement
    (REPLACEMENT_REASON, [(CALL, ON)], Do.WAIT),
    (REPLACEMENT_REASON, [(CALL, UNKNOWN)], Do.WAIT),
    (REPLACEMENT_REASON, [], Do.LIFT),
    (REPLACEMENT_REASON, [(CALL, OFF), (names.HARDWARE_SUSPECTED, OFF)], Do.LIFT),
    (REPLACEMENT_REASON, [(names.HARDWARE_SUSPECTED, ON)], Do.WAIT),
    (REPLACEMENT_REASON, [(names.HARDWARE_SUSPECTED, UNKNOWN)], Do.WAIT),
    (REPLACEMENT_REASON, [(names.MAINTENANCE, ON)], Do.WAIT),
    (REPLACEMENT_REASON, [(names.MAINTENANCE, UNKNOWN)], Do.WAIT),
    (REPLACEMENT_REASON, [(names.DRAIN, ON)], Do.WAIT),
    (REPLACEMENT_REASON, [(names.DRAIN, UNKNOWN)], Do.WAIT),
    (REPLACEMENT_REASON, [(names.DRAIN, OFF)], Do.LIFT),
    # Scan B: reboot
    ("Kill task failed", [], Do.DRAIN_FOR_REBOOT),
    ("Kill task failed", [(CALL, ON)], Do.WAIT),
    ("Kill task failed", [(names.DEGRADED, ON)], Do.WAIT),
    ("Kill task failed", [(names.DEGRADED, OFF, EARLIER)], Do.DRAIN_FOR_REBOOT),
    ("Kill task failed", [(names.DEGRADED, OFF, LATER)], Do.LIFT),
    (REBOOT_REASON, [], Do.ASK_FOR_REBOOT),
    (REBOOT_REASON, [(CALL, ON)], Do.WAIT),
    (REBOOT_REASON, [(names.DEGRADED, ON)], Do.WAIT),
    (REBOOT_REASON, [(names.DEGRADED, UNKNOWN)], Do.COMPLAIN),
    (REBOOT_REASON, [(names.DEGRADED, OFF, LATER)], Do.LIFT),
    (REBOOT_REASON, [(names.DEGRADED, OFF, LATER), (names.DRAIN, ON)], Do.WAIT),
    (REBOOT_REASON, [(names.DEGRADED, OFF, LATER), (CALL, UNKNOWN)], Do.WAIT),
    (REBOOT_REASON, [(names.DEGRADED, OFF, EARLIER)], Do.ASK_FOR_REBOOT),
    (REBOOT_REASON, [(names.DEGRADED, OFF, NOW)], Do.ASK_FOR_REBOOT),
    (REBOOT_REASON, [(names.DEGRADED, OFF, None)], Do.COMPLAIN),
    (REBOOT_REASON + " : Not responding", [(names.DEGRADED, OFF, EARLIER)], Do.COMPLAIN),
    (REBOOT_REASON + " : Not responding", [(names.DEGRADED, OFF, LATER)], Do.LIFT),
    # Scan B: hardware, only with replacement
    ("[node_problem] gpus: job 7", [], Do.LEAVE),
    ("[hardware_problem] gpus: job 7", [], Do.LEAVE),
]


def sentence(case) -> str:
    reason, conditions, does = case
    told = ", ".join(
        " ".join(map(str, one[:2])) + (f" since {one[2]:%H:%M}" if one[2:] and one[2] else "")
        for one in conditions
    )
    return f"{reason or 'takes jobs'} | {told or 'no condition'} -> {does}"


def with_reason(there: World, reason: str) -> World:
    return there.drained("cpu-0", reason, at=NOW) if reason else there


@pytest.mark.parametrize("case", CASES, ids=sentence)
def test_what_follows_from_a_reason_and_conditions(case):
    reason, conditions, does = case
    there = with_reason(
        world(*(condition(one[0], one[1], since=one[2] if one[2:] else LONG_AGO) for one in conditions)),
        reason,
    )

    assert done(there).do is does, done(there).rule.name


REPLACING = [
    # reason, conditions, Kubernetes node made at, pod placed at, what is done
    ("[node_problem] gpus: job 7", [], LONG_AGO, LONG_AGO, Do.SUSPECT_HARDWARE),
    ("[hardware_problem] gpus", [], LONG_AGO, LONG_AGO, Do.SUSPECT_HARDWARE),
    ("[node_problem] gpus", [], LONG_AGO, LONG_AGO, Do.COMPLAIN),
    ("[node_problem] gpus: job 7", [(names.HARDWARE_SUSPECTED, ON)], LONG_AGO, LONG_AGO, Do.WAIT),
    ("[node_problem] gpus: job 7", [(names.HARDWARE_SUSPECTED, UNKNOWN)], LONG_AGO, LONG_AGO, Do.WAIT),
    ("[node_problem] gpus: job 7", [], LATER, LONG_AGO, Do.LIFT),
    ("[hardware_problem] gpus", [], LATER, LONG_AGO, Do.LIFT),
    ("[node_problem] gpus: job 7", [], LONG_AGO, LATER, Do.LIFT),
    ("[node_problem] gpus: job 7", [(names.HARDWARE_SUSPECTED, ON)], LONG_AGO, LATER, Do.WAIT),
    ("[node_problem] gpus: job 7", [(CALL, ON)], LATER, LATER, Do.WAIT),
    ("[node_problem] gpus: job 7", [(names.DRAIN, ON)], LATER, LATER, Do.WAIT),
    ("[user_problem] gpus: job 7", [], LATER, LATER, Do.LEAVE),
    ("new disks", [], LATER, LATER, Do.LEAVE),
]


@pytest.mark.parametrize(("reason", "conditions", "made_at", "placed_at", "does"), REPLACING)
def test_hardware_that_checks_call_broken_is_replaced_where_that_is_on(
    reason, conditions, made_at, placed_at, does
):
    marks = [condition(*one) for one in conditions]
    there = world(*marks, options=NodeOptions(replaces=True), made_at=made_at)
    there.place("cpu-0", "n0", placed_at=placed_at)
    there.drained("cpu-0", reason, at=NOW)

    assert done(there).do is does, done(there).rule.name


@pytest.mark.parametrize(
    ("reason", "conditions", "does"),
    [
        (REBOOT_REASON, [], Do.LIFT),
        (REBOOT_REASON, [(names.DEGRADED, OFF)], Do.LIFT),
        (REBOOT_REASON, [(names.DEGRADED, ON)], Do.WAIT),
        (REBOOT_REASON, [(names.DRAIN, ON)], Do.WAIT),
        ("Kill task failed", [], Do.LEAVE),
    ],
)
def test_a_worker_with_another_pod_by_now_needs_no_reboot(reason, conditions, does):
    there = world(*(condition(*one) for one in conditions))
    there.place("cpu-0", "n0", placed_at=LATER)
    there.drained("cpu-0", reason, at=NOW)

    assert done(there).do is does, done(there).rule.name


def test_workers_beside_one_that_needs_a_reboot_are_drained_too():
    there = World().add(kube_node(), "cpu-0", "cpu-1", "cpu-2")
    there.drained("cpu-0", REBOOT_REASON).drained("cpu-2", "grace: new disks")

    assert [done(there, f"cpu-{n}").do for n in range(3)] == [
        Do.ASK_FOR_REBOOT,
        Do.DRAIN_FOR_REBOOT,
        Do.LEAVE,
    ]


@pytest.mark.parametrize("is_tainted", [True, False])
def test_the_taint_or_cordon_of_the_rebooter_keeps_drains(is_tainted):
    """It cordons first and taints last, and takes both back in one step."""
    there = world().drained("cpu-0", REPLACEMENT_REASON)
    there.taint("n0")
    if not is_tainted:
        there.nodes["n0"] = wire.replace(there.nodes["n0"], spec=KubeNodeSpec(unschedulable=True))
    assert done(there).do is Do.WAIT
    there.taint("n0", on=False)
    assert done(there).do is Do.LIFT


def test_a_reason_without_a_date_is_not_lifted():
    there = world(condition(names.DEGRADED, OFF, since=LATER)).drained("cpu-0", REBOOT_REASON)
    there.records["cpu-0"] = slurm_node(there.pods["cpu-0"], "IDLE", "DRAIN", reason=REBOOT_REASON, at=None)

    assert done(there).do is Do.COMPLAIN
    assert "scontrol update nodename=cpu-0 state=resume" in waits(there.decide()[1])["CannotTell"]


def test_a_record_of_another_pod_says_nothing():
    there = world().drained("cpu-0", REPLACEMENT_REASON)
    there.pods["cpu-0"] = pod("cpu-0", "n0", placed_at=LATER)
    there.records["cpu-0"] = slurm_node(pod("cpu-0", "elsewhere"), "IDLE", "DRAIN", reason=REPLACEMENT_REASON)

    assert done(there).do is Do.WAIT
    assert not writes(there.decide()[1])


def test_slurm_that_does_not_answer_says_nothing():
    there = world(condition(CALL)).drained("cpu-0", REPLACEMENT_REASON)
    there.unreachable = "timed out"

    assert done(there).do is Do.WAIT
    assert not writes(there.decide()[1])


def test_drains_and_lifts_name_what_they_may_replace():
    """The writer reads the node right before, and touches no other reason."""
    there = World().add(kube_node(), "cpu-0", "cpu-1", *(f"cpu-{n}" for n in range(2, 10)))
    there.drained("cpu-0", "Kill task failed")
    there.options = NodeOptions(brake=replace(there.options.brake, max_percent=100))
    [write] = writes(there.decide()[1])
    assert isinstance(write, DrainNodes)
    assert (write.reason, write.over) == (REBOOT_REASON, frozenset({"Kill task failed"}))

    there = world().drained("cpu-0", REPLACEMENT_REASON + " : Not responding")
    assert writes(there.decide()[1]) == [
        ResumeNodes(nodes=("cpu-0",), over=frozenset({REPLACEMENT_REASON + " : Not responding"}))
    ]


def test_a_reason_that_a_person_gave_without_a_drain_stays():
    """Such as why it is down: a drain would replace it."""
    there = world(condition(CALL)).drained("cpu-0", "grace: fan", NOW, "DOWN", reason_set_by="root")

    assert done(there).do is Do.DRAIN_FOR_REPLACEMENT
    assert not writes(there.decide()[1])


def test_with_these_rules_off_nothing_is_drained_or_lifted():
    there = world(condition(CALL), options=NodeOptions(follows_slurm=False))

    assert not writes(there.decide()[1])
    assert not wanted(there.decide()[1])


def test_every_rule_is_reached_by_a_case_here():
    """So that none is shadowed by one before it."""
    reached = set()
    for reason, conditions, _ in CASES:
        marks = [condition(one[0], one[1], since=one[2] if one[2:] else LONG_AGO) for one in conditions]
        reached.add(done(with_reason(world(*marks), reason)).rule.name)
    for reason, conditions, made_at, placed_at, _ in REPLACING:
        there = world(
            *(condition(*one) for one in conditions), options=NodeOptions(replaces=True), made_at=made_at
        )
        there.place("cpu-0", "n0", placed_at=placed_at)
        reached.add(done(there.drained("cpu-0", reason, at=NOW)).rule.name)
    elsewhere = {
        "Slurm does not answer, or does not know it",
        "a worker beside it needs a reboot",
        "slurmd's own drain goes with the pod",
        "the worker runs elsewhere by now",
    }

    for reason, _, used, _ in STORAGE:
        there = with_reason(world(), reason)
        there.storage = {} if used is None else {"cpu-0": used}
        reached.add(done(there).rule.name)

    assert {one.name for one in RULES} - reached == elsewhere


# ---- Local storage

FULL = "[user_problem] pod_ephemeral_storage nearly full"
STORAGE = [
    # reason, conditions, percent of the limit, what is done
    ("", [], 85.1, Do.DRAIN_FOR_STORAGE),
    ("", [], 85.0, Do.LEAVE),
    ("", [], None, Do.LEAVE),
    ("", [(CALL, ON)], 99.0, Do.DRAIN_FOR_REPLACEMENT),
    ("new disks", [], 99.0, Do.LEAVE),
    ("[user_problem] boot_disk_full: 99 %", [], 10.0, Do.LEAVE),
    (FULL, [], 79.9, Do.LIFT),
    (FULL, [], 80.0, Do.WAIT),
    (FULL, [], 99.0, Do.WAIT),
    (FULL, [], None, Do.WAIT),
    (FULL, [(CALL, ON)], 10.0, Do.WAIT),
    (FULL, [(CALL, UNKNOWN)], 10.0, Do.WAIT),
    (FULL, [(names.DRAIN, ON)], 10.0, Do.WAIT),
]


@pytest.mark.parametrize(("reason", "conditions", "used", "does"), STORAGE)
def test_a_worker_whose_local_storage_is_nearly_full_takes_no_jobs(reason, conditions, used, does):
    there = with_reason(world(*(condition(*one) for one in conditions)), reason)
    there.storage = {} if used is None else {"cpu-0": used}

    assert done(there).do is does, done(there).rule.name
    there.storage_read_at = there.now - timedelta(minutes=4)
    if does in (Do.DRAIN_FOR_STORAGE, Do.LIFT):
        assert done(there).do in (Do.LEAVE, Do.WAIT), "an old reading says nothing"


def test_full_storage_is_told_and_lifted_when_there_is_room():
    there = world()
    there.storage = {"cpu-0": 90.0}
    there.passes()
    assert there.records["cpu-0"].reason == FULL
    assert [line for line in there.told if "HighEphemeralStorageUsage" in line]
    assert there.mark("n0", names.DEGRADED) is None, "no reboot follows"

    there.storage = {"cpu-0": 82.0}
    assert there.passes().records["cpu-0"].reason == FULL
    there.storage = {"cpu-0": 50.0}
    assert there.passes().records["cpu-0"].reason == ""


def test_the_brake_holds_drains_for_storage():
    there = World()
    for number in range(10):
        there.add(kube_node(f"n{number}"), f"cpu-{number}")
        there.storage[f"cpu-{number}"] = 90.0

    assert "BrakeOn" in waits(there.decide()[1])
    assert not writes(there.decide()[1])


def test_storage_may_be_looked_at_alone():
    options = NodeOptions(follows_slurm=False, follows_conditions=False)
    there = world(options=options)
    there.storage = {"cpu-0": 90.0}
    assert writes(there.decide()[1])
    there.options = replace(options, follows_storage=False)
    assert not writes(there.decide()[1])
