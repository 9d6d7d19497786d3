from datetime import UTC, datetime, timedelta

import pytest

from slurm_operator.api.shared.conditions import MOST_CHARACTERS
from slurm_operator.plan.conditions import READY, false, settled, true
from testing.hostile import HOSTILE, obeyed

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


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_a_message_quotes_is_shown_never_obeyed_and_not_too_long_for_the_api_server(text):
    [told] = settled([false(READY, "Refused", f"Slurm says {text}")], [], generation=1, now=NOON)
    [again] = settled([told], [told], generation=1, now=NOON)

    assert told.message.startswith("Slurm says ")
    assert obeyed(told.message, but="") == ""
    assert len(told.message) <= MOST_CHARACTERS
    assert again == told
