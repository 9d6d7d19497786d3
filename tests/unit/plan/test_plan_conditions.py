from datetime import UTC, datetime, timedelta

from slurm_operator.plan.conditions import READY, false, settled, true

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_the_transition_time_stays_while_the_status_stays():
    [before] = settled([false(READY, "Starting")], [], generation=1, now=NOON)

    [same] = settled([false(READY, "Waiting", "more")], [before], generation=2, now=NOON + timedelta(hours=1))
    [changed] = settled([true(READY, "Running")], [same], generation=2, now=NOON + timedelta(hours=2))

    assert same.last_transition_time == NOON
    assert (same.reason, same.message, same.observed_generation) == ("Waiting", "more", 2)
    assert changed.last_transition_time == NOON + timedelta(hours=2)


def test_conditions_are_sorted_so_that_equal_statuses_are_equal_bytes():
    conditions = settled([true("Ready", "A"), true("Degraded", "B")], [], generation=1, now=NOON)

    assert [condition.type for condition in conditions] == ["Degraded", "Ready"]
