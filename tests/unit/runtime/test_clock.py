"""One clock for people, one for ages, and that of a pass, which begins with the one and goes on by the other."""

from datetime import UTC, datetime, timedelta

import pytest

from slurm_operator.clock import PassClock, SystemClock
from slurm_operator.safety.gate import PROOF_LIFETIME
from slurm_operator.slurm.snapshot import Snapshot, Unreachable, dated

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


class Machine:
    """A clock that somebody sets, by so many seconds."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.passed, self.ahead = 0.0, ahead

    def now(self) -> datetime:
        return self.steady() + seconds(self.ahead)

    def steady(self) -> datetime:
        return NOON + seconds(self.passed)


def snapshot(asked_at: datetime, **more) -> Snapshot:
    return Snapshot(nodes={}, jobs={}, nodes_asked_at=asked_at, jobs_asked_at=asked_at, **more)


@pytest.mark.parametrize("step", [-3600, -60, -23, -11, -2, 2, 60, 3600])
@pytest.mark.parametrize(("age", "is_fresh"), [(0, True), (5, True), (5.1, False), (12, False), (25, False)])
@pytest.mark.parametrize("when", ["before it is read", "before the pass", "in the pass"])
def test_an_answer_is_as_old_as_it_is_whenever_the_clock_is_set(step, age, is_fresh, when):
    machine = Machine(ahead=step if when == "before it is read" else 0)
    read = snapshot(machine.steady())
    machine.passed += age
    if when == "before the pass":
        machine.ahead = step
    clock = PassClock(machine)
    if when == "in the pass":
        machine.ahead = step

    told = clock.dated(read)

    assert told.is_fresh(clock.now(), PROOF_LIFETIME) is is_fresh
    assert clock.now() - told.asked_at == seconds(age)


def test_a_pass_begins_with_the_time_that_people_read():
    """Pods are dated by it, or by one that is kept like it."""
    machine = Machine(ahead=-3600)
    clock = PassClock(machine)
    machine.passed += 7

    assert clock.now() == machine.now()


def test_while_nobody_sets_the_clock_nothing_is_dated_otherwise():
    read, machine = snapshot(NOON), Machine(ahead=0.04)

    assert PassClock(machine).dated(read) is read


def test_what_slurm_dated_stays_where_it_was_in_our_time():
    """A drain that is a minute old is so whatever was done to our clock since Slurm was read."""
    drained_at = NOON - seconds(60) - seconds(5)  # By slurmctld's clock, which is 5 s behind.
    read = snapshot(NOON, clock_behind=seconds(5), settles_at=NOON + seconds(10))

    told = dated(read, seconds(-30))

    assert told.asked_at - (drained_at + told.clock_behind) == seconds(60)
    assert told.is_settled is read.is_settled is False
    assert dated(told, seconds(30)) == read


def test_since_when_nobody_answers_is_told_by_the_same_clock():
    assert dated(Unreachable(since=NOON, why="?"), seconds(7)).since == NOON + seconds(7)


def test_clocks_of_one_process_agree():
    first, second = SystemClock().steady(), SystemClock().steady()

    assert first <= second
    assert abs(SystemClock().now() - second) < seconds(60)
