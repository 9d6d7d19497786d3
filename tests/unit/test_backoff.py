"""Pauses before another try."""

import math

from slurm_operator.backoff import Backoff, backoff_seconds, spread


def test_each_pause_is_twice_as_long_up_to_the_limit():
    pauses = [backoff_seconds(doublings, first_seconds=0.5, longest_seconds=3.0) for doublings in range(5)]

    assert pauses == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_count_that_is_never_reset_has_a_pause_too():
    assert backoff_seconds(100_000, first_seconds=1.0, longest_seconds=math.inf) == 2.0**20


def test_those_who_failed_together_return_at_times_of_their_own_but_none_at_once():
    assert [spread(8.0, jitter) for jitter in (0.0, 0.5, 1.0)] == [4.0, 6.0, 8.0]


def test_what_works_again_begins_with_the_first_pause():
    pauses = Backoff(first_seconds=1.0, longest_seconds=64.0)
    grown = [pauses.next_seconds() for _ in range(7)]
    pauses.reset()

    assert 32.0 <= grown[-1] <= 64.0
    assert 0.5 <= pauses.next_seconds() <= 1.0
