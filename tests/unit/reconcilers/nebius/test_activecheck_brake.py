"""The brake: a check that would take too many workers out of service stops and asks a person."""

from datetime import timedelta

import pytest

from slurm_operator.api.nebius import ActiveCheck, names
from slurm_operator.api.schema import codec
from slurm_operator.reconcilers.nebius.shared.brake import Limit, excesses, nodeset_of
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Unreachable
from testing.checks import (
    NOW,
    SLURM,
    changed_node,
    check,
    conditions,
    decide,
    ended,
    made,
    node,
    passed,
    patched,
    told,
    waits,
    with_run,
    with_slurm,
    world,
    writes,
)


def failing(*numbers: int, workers: int = 10, **spec):
    """Jobs failed on these workers."""
    there = with_run(world(check(**spec), workers=workers), ids=",".join(str(100 + n) for n in numbers))
    for number in numbers:
        there.job_ends[100 + number] = (ended(100 + number, "FAILED", f"cpu-{number}"),)
    return there


def answered(there, **notes: str):
    """A person annotates the check."""
    found = there.get(ActiveCheck, "ns", "gpus")
    there.things = [thing for thing in there.things if thing is not found]
    body = codec.plain(found)
    body["metadata"]["annotations"] = {
        f"slurm.nebius.ai/{key.replace('_', '-')}": v for key, v in notes.items()
    }
    there.things.append(codec.read(ActiveCheck, body))
    return there


LIMITS = [
    # workers, percent, allowed
    (10, 20, 2),
    (9, 20, 1),
    (3, 20, 1),  # A fifth of three would be none.
    (1, 20, 1),
    (10, 0, 0),
    (10, 100, 10),
    (1000, 20, 200),
]


@pytest.mark.parametrize(("workers", "percent", "allowed"), LIMITS)
def test_how_many_are_allowed(workers, percent, allowed):
    assert Limit(percent).allowed(workers) == allowed


@pytest.mark.parametrize(
    ("numbers", "is_on"),
    [((0, 1), False), ((0, 1, 2), True)],
    ids=["a fifth is allowed", "more is not"],
)
def test_the_default_is_a_fifth_of_a_nodeset(numbers, is_on):
    there = failing(*numbers)
    _, plan = decide(there)

    assert bool(writes(plan)) == (not is_on)
    assert ("BrakeOn" in waits(plan)) == is_on
    assert conditions(told(there, done=False))["Braked"] == (
        ("True", "BrakeOn") if is_on else ("False", "AsExpected")
    )


def test_the_brake_says_whom_it_is_about_and_how_to_answer():
    text = waits(decide(failing(0, 1, 2))[1])["BrakeOn"]

    assert "3 of 10 workers of NodeSet cpu within 1h; 2 may be (cpu-0, cpu-1, cpu-2)" in text
    assert f"kubectl annotate activecheck.slurm.nebius.ai gpus {names.BRAKE_RELEASE}=gpus-initial-run" in text
    assert f"{names.BRAKE_DISMISS}=gpus-initial-run" in text
    assert "jobs 100, 101, 102" in text


def test_while_the_brake_is_on_nothing_is_called_handled_and_no_run_is_due():
    _, plan = decide(failing(0, 1, 2))

    assert not patched(plan)
    assert made(plan, "CronJob")[0]["spec"]["suspend"] is True


def test_a_person_releases_the_brake_for_one_run():
    _, plan = decide(answered(failing(0, 1, 2), brake_release="gpus-initial-run"))

    assert [write.nodes for write in writes(plan)] == [("cpu-0",), ("cpu-1",), ("cpu-2",)]
    assert patched(plan)[0][names.UNHANDLED_JOB_IDS] == ""
    assert not waits(plan)


def test_a_release_for_another_run_counts_for_nothing():
    assert "BrakeOn" in waits(decide(answered(failing(0, 1, 2), brake_release="gpus-28000000"))[1])


def test_a_person_dismisses_a_run():
    _, plan = decide(answered(failing(0, 1, 2), brake_dismiss="gpus-initial-run"))

    assert not writes(plan)
    assert patched(plan)[0][names.UNHANDLED_JOB_IDS] == ""
    assert not waits(plan)


def test_one_after_the_other_is_too_many_as_well():
    """What was drained within the window counts, also when the node is in service again."""
    there = failing(0, 1)
    passed(there)
    with_run(there, ids="102", run="later", made_at=NOW + timedelta(minutes=10))
    there.job_ends[102] = (ended(102, "FAILED", "cpu-2"),)
    there.now = NOW + timedelta(minutes=10)

    assert "1 of 10 workers of NodeSet cpu, after 2 within 1h" in waits(decide(there)[1])["BrakeOn"]

    there.now = NOW + timedelta(minutes=61)
    assert [write.nodes for write in writes(decide(there)[1])] == [("cpu-2",)]


def test_what_slurm_says_counts_where_the_status_was_lost():
    """A crash between the drain and the status."""
    there = failing(2)
    for number in (0, 1):
        reason = f"[node_problem] gpus: job {number} [slurm_job]"
        changed_node(
            there,
            node(
                f"cpu-{number}", "IDLE", "DRAIN", reason=reason, reason_changed_at=NOW - timedelta(minutes=5)
            ),
        )

    assert "after 2" in waits(decide(there)[1])["BrakeOn"]


def test_drains_of_others_do_not_count():
    there = failing(2, 3)
    for number in (0, 1):
        changed_node(
            there, node(f"cpu-{number}", "IDLE", "DRAIN", reason="grace: new disks", reason_changed_at=NOW)
        )

    assert "BrakeOn" not in waits(decide(there)[1])


def test_nodes_that_drain_already_need_no_brake():
    there = failing(0, 1, 2)
    for number in (0, 1, 2):
        changed_node(there, node(f"cpu-{number}", "IDLE", "DRAIN", reason="grace: new disks"))
    _, plan = decide(there)

    assert not waits(plan)
    assert patched(plan)[0][names.UNHANDLED_JOB_IDS] == ""


def test_comments_need_no_brake():
    there = failing(0, 1, 2, failureReactions={"commentSlurmNode": {"commentPrefix": "bad"}})

    assert len(writes(decide(there)[1])) == 3


def test_reservations_take_nodes_out_of_service_too():
    there = failing(0, 1, 2, failureReactions={"addReservation": {"prefix": "suspicious-node"}})

    assert "BrakeOn" in waits(decide(there)[1])
    there_already = {
        f"suspicious-node-cpu-{n}": Reservation(name=f"suspicious-node-cpu-{n}") for n in range(3)
    }
    with_slurm(there, dict(there.slurms[SLURM].nodes), reservations=there_already)
    assert "BrakeOn" not in waits(decide(there)[1])


def test_with_nothing_allowed_every_drain_asks():
    assert "BrakeOn" in waits(decide(failing(0, brake={"maxPercent": 0}))[1])


def test_each_nodeset_has_its_own_share():
    """Ten of a NodeSet of a hundred are fine, two of a NodeSet of three are not."""
    nodes = [f"big-{n}" for n in range(100)] + [f"small-{n}" for n in range(3)] + ["static"]
    found = excesses(
        {*(f"big-{n}" for n in range(10)), "small-0", "small-1", "static"},
        (),
        nodes,
        {"big", "small"},
        Limit(),
    )

    assert [(one.nodeset, one.workers, one.wanted) for one in found] == [("small", 3, ("small-0", "small-1"))]


@pytest.mark.parametrize(
    ("name", "nodeset"),
    [("cpu-3", "cpu"), ("cpu-big-3", "cpu-big"), ("cpu-x", ""), ("gpu-3", ""), ("static", "")],
)
def test_whose_worker_a_node_is(name, nodeset):
    assert nodeset_of(name, {"cpu", "cpu-big"}) == nodeset


def test_the_brake_stays_on_while_slurm_does_not_answer():
    there = failing(0, 1, 2)
    before = told(there)
    there.slurms[SLURM] = Unreachable(since=NOW, why="timed out")
    _, plan = decide(there)

    assert {"BrakeOn", "SlurmUnreachable"} <= waits(plan).keys()
    assert [body["spec"]["suspend"] for body in made(plan, "CronJob")] == [True]
    braked = [
        next(one for one in status["conditions"] if one["type"] == "Braked")
        for status in (before, told(there))
    ]
    assert braked[0] == braked[1]


def test_a_brake_that_was_off_stays_off_while_slurm_does_not_answer():
    there = failing(0)
    there.slurms[SLURM] = Unreachable(since=NOW, why="timed out")
    told(there)
    _, plan = decide(there)

    assert "BrakeOn" not in waits(plan)
    assert [body["spec"]["suspend"] for body in made(plan, "CronJob")] == [False]
