"""Scheduled updates: the window in Slurm, what it remembers, and who is replaced in it."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset_status import ReservationStatus
from slurm_operator.plan.actions import WriteSlurm
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.writes import Reserve, Unreserve
from testing.workers import (
    CONTROLLER,
    KEY,
    NOW,
    controller,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

HOUR = timedelta(hours=1)
NAME = "SlurmOperatorMaint-gpu"


def text(moment) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def seen(
    *reservations,
    start=NOW + HOUR,
    flags=(),
    memory=None,
    words=("IDLE",),
    type_="ScheduledUpdate",
    old=False,
    lasts="30m",
    **spec,
):
    schedule = {"startTime": text(start), "duration": lasts, "flags": list(flags)}
    made = nodeset(**{"replicas": 1, "updateStrategy": {"type": type_, "scheduledUpdate": schedule}, **spec})
    if memory is not None:
        made = type(made)(
            metadata=made.metadata, spec=made.spec, status=type(made.status)(reservation=ReservationStatus(name=NAME, requested_start=memory))
        )  # fmt: skip
    revision = revision_of(made)
    pod = worker(0, revision="before" if old else revision.metadata.labels[names.LABEL_REVISION])
    node = slurm_node(pod, *words, reservation=NAME if "MAINTENANCE" in words else "")
    return world(
        made, controller(), pod, revisions_=[revision], slurm_=slurm(node, reservations=reservations)
    )


def there(
    start=NOW + HOUR,
    *,
    nodes=("gpu-0",),
    flags=("MAINT", "IGNORE_JOBS", "SPEC_NODES"),
    end=None,
    users=("slurm",),
):
    return Reservation(
        name=NAME, start_time=start, end_time=end or start + HOUR / 2, nodes=nodes, users=users, flags=frozenset(flags)
    )  # fmt: skip


def writes(made) -> list:
    found = [action.write for action in planned(made).actions() if isinstance(action, WriteSlurm)]
    return [write for write in found if isinstance(write, Reserve | Unreserve)]


WEEKLY = ("MAINT", "IGNORE_JOBS", "SPEC_NODES", "WEEKLY")
DAILY = ("MAINT", "IGNORE_JOBS", "SPEC_NODES", "DAILY")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(seen(), ["made"], id="none yet: made"),
        pytest.param(seen(start=NOW - HOUR), [], id="its time has passed: not made"),
        pytest.param(seen(start=NOW - HOUR, flags=["force_start"]), ["made"], id="unless it is to start at once"),
        pytest.param(seen(start=NOW - HOUR, flags=["FORCE_START"], memory=NOW - HOUR), [], id="but a window that has been is not made again"),
        pytest.param(seen(there()), [], id="as asked"),
        pytest.param(seen(there(), start=NOW + 2 * HOUR), ["made"], id="another time"),
        pytest.param(seen(there(end=NOW + 2 * HOUR)), ["changed"], id="another length: its start stays"),
        pytest.param(seen(there(), lasts="30m45s"), [], id="Slurm counts in minutes"),
        pytest.param(seen(there(), start=NOW + HOUR + timedelta(milliseconds=500)), [], id="and starts in seconds"),
        pytest.param(seen(there(), lasts="0s"), [], id="no length given: half an hour"),
        pytest.param(seen(there(NOW - HOUR), lasts="2h", start=NOW - HOUR), [], id="over: left to Slurm"),
        pytest.param(seen(there(end=NOW + 2 * HOUR, flags=WEEKLY), flags=["WEEKLY"], memory=NOW + HOUR), ["changed"], id="a recurring one gets another length"),
        pytest.param(seen(there(flags=WEEKLY), memory=NOW + HOUR), ["changed"], id="it is to come no more after this"),
        pytest.param(seen(start=NOW - HOUR, flags=["WEEKLY"]), ["made"], id="scaled to 0 and back: a recurring one comes again"),
        pytest.param(seen(there(NOW + 24 * HOUR, flags=WEEKLY), start=NOW - HOUR, flags=["WEEKLY"], memory=NOW - 2 * HOUR), ["made"], id="a recurring one asked for at another time, in the past"),
        pytest.param(seen(there(), flags=["WEEKLY"]), ["changed"], id="another flag: its times stay"),
        pytest.param(seen(there(users=("root",))), ["changed"], id="another user"),
        pytest.param(seen(there(NOW + 168 * HOUR, flags=WEEKLY), start=NOW - HOUR, flags=["WEEKLY"], memory=NOW - HOUR), [], id="Slurm moved a recurring one on: that stands"),
        pytest.param(seen(there(NOW + 168 * HOUR, flags=WEEKLY), flags=["WEEKLY"], memory=NOW - HOUR), ["made"], id="unless the spec asks for another time"),
        pytest.param(seen(there(nodes=("gpu-0", "gpu-9"))), ["changed"], id="other workers, later"),
        pytest.param(seen(there(NOW - HOUR / 4, nodes=("gpu-9",))), ["nodes"], id="other workers, under way: only they change"),
        pytest.param(seen(there(NOW - HOUR / 4), flags=["WEEKLY"]), [], id="under way: nothing else is touched"),
        pytest.param(seen(there(), type_="RollingUpdate"), ["removed"], id="no longer asked for"),
        pytest.param(seen(there(), replicas=0), ["removed"], id="no workers"),
        pytest.param(seen(there(), deleted=True), ["removed"], id="the NodeSet goes"),
        pytest.param(seen(type_="OnDelete"), [], id="never asked for"),
    ],
)  # fmt: skip
def test_the_window_is_as_asked(made, expected):
    def kind(write) -> str:
        if isinstance(write, Unreserve):
            return "removed"
        return "made" if write.start_time is not None else "changed" if write.flags else "nodes"

    assert [kind(write) for write in writes(made)] == expected


def test_what_is_asked_of_slurm():
    [write] = writes(seen(flags=["weekly", "MAINT"]))

    assert write == Reserve(
        name=NAME, nodes=("gpu-0",), start_time=NOW + HOUR, duration=HOUR / 2, users=("slurm",),
        flags=("MAINT", "IGNORE_JOBS", "WEEKLY"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made", "flags"),
    [
        pytest.param(seen(there(flags=DAILY)), ("NO_DAILY",), id="it is to recur no more"),
        pytest.param(seen(there(flags=DAILY), flags=["WEEKLY"]), ("NO_DAILY",), id="it is to recur otherwise: first the previous one goes"),
        pytest.param(seen(there(flags=DAILY), flags=["WEEKLY"], start=NOW + 3 * HOUR, memory=NOW), ("NO_DAILY",), id="at another time, too"),
        pytest.param(seen(there(), flags=["WEEKLY"], memory=NOW + HOUR), ("WEEKLY",), id="then the new one comes"),
    ],
)  # fmt: skip
def test_a_window_recurs_as_asked_by_one_flag_at_a_time(made, flags):
    [write] = writes(made)

    assert write.flags == ("MAINT", "IGNORE_JOBS", *flags)
    assert write.start_time is None


def days(count) -> timedelta:
    return timedelta(days=count)


@pytest.mark.parametrize(
    ("start", "flag", "first"),
    [
        pytest.param(NOW - HOUR / 2, "HOURLY", NOW + HOUR / 2, id="hourly"),
        pytest.param(NOW - days(9), "DAILY", NOW + days(1), id="daily"),
        pytest.param(NOW - days(9), "WEEKLY", NOW + days(5), id="weekly: the same day of the week"),
        pytest.param(NOW - days(9) + HOUR, "DAILY", NOW + HOUR, id="daily, later today"),
        pytest.param(NOW - days(7), "WEEKEND", NOW + days(2), id="at weekends: today is a Thursday"),
        pytest.param(NOW - days(7), "WEEKDAY", NOW + days(1), id="on weekdays"),
        pytest.param(NOW + HOUR, "DAILY", NOW + HOUR, id="ahead: as asked"),
    ],
)
def test_a_recurring_window_whose_start_has_passed_is_made_for_its_next_time(start, flag, first):
    [write] = writes(seen(start=start, flags=[flag]))

    assert write.start_time == first


def test_without_an_answer_from_slurm_nothing_is_asked_of_it():
    made = seen(there(), type_="RollingUpdate")
    made.slurms[CONTROLLER] = Unreachable(since=NOW, why="no answer")

    assert writes(made) == []


@pytest.mark.parametrize(
    ("words", "old", "story"),
    [
        pytest.param(("IDLE",), True, [], id="before the window: old workers stay"),
        pytest.param(("IDLE", "MAINTENANCE"), True, ["drain gpu-0 for Update"], id="in it: they go"),
        pytest.param(("IDLE", "MAINTENANCE"), False, [], id="in it, but new"),
    ],
)
def test_old_workers_are_replaced_in_the_window(words, old, story):
    assert [
        line for line in told(seen(there(NOW - HOUR / 4), words=words, old=old)) if "drain" in line
    ] == story


def test_on_delete_replaces_nobody_and_who_was_deleted_comes_back_new():
    made = seen(type_="OnDelete", old=True)
    assert told(made) == []

    made.things = [thing for thing in made.things if type(thing).__name__ != "Pod"]
    assert told(made) == ["create Pod gpu-0"]


def status(made, done=False):
    found = RECONCILER.observe(KEY, made)
    plan = RECONCILER.decide(found, NOW)
    report = RECONCILER.status(found, plan, Outcome(done=tuple(plan.actions()) if done else ()))
    conditions = {c.type: c.reason for c in report.conditions}
    return conditions.get("ReservationCreated"), report.fields["reservation"]


@pytest.mark.parametrize(
    ("made", "condition", "requested"),
    [
        pytest.param(seen(), "NotExists", NOW + HOUR, id="just made"),
        pytest.param(seen(there(), memory=NOW + HOUR), "Created", NOW + HOUR, id="there"),
        pytest.param(seen(there()), "Created", NOW + HOUR, id="found there: taken for what is asked"),
        pytest.param(seen(start=NOW - HOUR, memory=NOW - HOUR), "NotExists", NOW - HOUR, id="over: remembered, so that it is not made again"),
        pytest.param(seen(type_="RollingUpdate", memory=NOW), None, None, id="not asked for"),
    ],
)  # fmt: skip
def test_status_remembers_for_which_wish_the_window_was_made(made, condition, requested):
    found, reservation = status(made, done=True)

    assert found == condition
    assert (reservation.requested_start if reservation is not None else None) == requested


def test_a_failed_write_is_not_remembered():
    _, reservation = status(seen(), done=False)

    assert reservation.requested_start is None


def test_a_finalizer_of_the_operator_before_us_holds_up_nothing():
    made = seen(deleted=True)
    gone = made.things[0]
    meta = wire.replace(gone.metadata, finalizers=[names.RESERVATION_FINALIZER, "keep.example.com/x"])
    made.things = [type(gone)(metadata=meta, spec=gone.spec, status=gone.status), controller()]

    [patch] = planned(made).actions()

    assert patch.operations[-1]["value"] == ["keep.example.com/x"]
