"""The queue's promises, played by hypothesis against every order of wishes, takes and completions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.runtime.loop.queue import LONGEST_BACKOFF_SECONDS, retry_seconds
from slurm_operator.runtime.loop.schedule import LIVE_IN_A_ROW, Schedule

KEYS = [ObjectKey(namespace, name) for namespace in ("a", "b") for name in ("x", "y")]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(KEYS), st.integers(0, 5), st.booleans()),
        st.tuples(st.just("take"), st.just(None), st.just(0), st.just(False)),
        st.tuples(st.just("done"), st.sampled_from(KEYS), st.just(0), st.just(False)),
        st.tuples(st.just("tick"), st.just(None), st.integers(1, 3), st.just(False)),
    ),
    max_size=80,
)


@given(steps)
@settings(max_examples=500)
def test_no_key_is_lost_none_runs_twice_at_once_and_the_earliest_wish_wins(story):
    schedule, now = Schedule(), 0.0
    running: set[ObjectKey] = set()
    wished: dict[ObjectKey, float] = {}  # the earliest wish that no pass has served yet

    for verb, key, number, calm in story:
        match verb:
            case "add":
                at = now if calm else now + number
                schedule.add(key, at, calm=calm)
                wished[key] = min(at, wished.get(key, at))
            case "tick":
                now += number
            case "take":
                taken = schedule.take(now)
                due = {key for key, at in wished.items() if at <= now} - running
                if taken is None:
                    assert not due
                else:
                    assert taken in due
                    del wished[taken]
                    running.add(taken)
            case "done" if key in running:
                running.remove(key)
                schedule.done(key)

    for key in running:
        schedule.done(key)
    left = set()
    while (key := schedule.take(now + 100)) is not None:
        left.add(key)
        schedule.done(key)
    assert left == set(wished)


def test_namespaces_take_turns():
    schedule = Schedule()
    for number in range(100):
        schedule.add(ObjectKey("busy", str(number)), 0)
    schedule.add(ObjectKey("quiet", "only"), 0)

    first_two = {schedule.take(0).namespace, schedule.take(0).namespace}

    assert first_two == {"busy", "quiet"}


def test_a_live_change_overtakes_the_first_list_but_does_not_starve_it():
    schedule = Schedule()
    for number in range(3):
        schedule.add(ObjectKey("first-list", str(number)), 0, calm=True)
    for number in range(2 * LIVE_IN_A_ROW):
        schedule.add(ObjectKey("live", str(number)), 0)

    order = [schedule.take(0).namespace for _ in range(LIVE_IN_A_ROW + 1)]

    assert order == ["live"] * LIVE_IN_A_ROW + ["first-list"]


def test_a_key_of_the_first_list_that_changes_becomes_a_live_one():
    schedule = Schedule()
    for name in ("x", "y"):
        schedule.add(ObjectKey("a", name), 0, calm=True)
    schedule.add(ObjectKey("a", "y"), 0)

    assert schedule.take(0) == ObjectKey("a", "y")
    assert schedule.depth == 1


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
def test_backoff_grows_to_its_limit_and_never_past_it(jitter):
    delays = [retry_seconds(failures, jitter) for failures in range(1, 200)]

    assert delays == sorted(delays)
    assert LONGEST_BACKOFF_SECONDS / 2 <= delays[-1] <= LONGEST_BACKOFF_SECONDS


def test_a_key_that_is_dear_to_look_at_rests_and_no_wish_is_lost_meanwhile():
    schedule, [key, *_] = Schedule(), KEYS
    schedule.add(key, 0.0)
    assert schedule.take(0.0) == key
    schedule.hold_off(key, 5.0)
    schedule.add(key, 1.0)
    schedule.done(key)
    schedule.add(key, 2.0)

    assert schedule.take(4.9) is None
    assert schedule.next_due() == 5.0
    assert schedule.take(5.0) == key
    schedule.done(key)
    assert schedule.take(100.0) is None, "one pass serves both wishes"
    schedule.add(key, 6.0)
    assert schedule.take(6.0) == key, "it has rested"
