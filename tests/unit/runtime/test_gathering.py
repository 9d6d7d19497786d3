"""The loop waits a moment where much is going on, and never where little is."""

import asyncio
import selectors
import socket
import time
from collections.abc import Iterator

import pytest

from slurm_operator.runtime.loop import gathering
from slurm_operator.runtime.loop.gathering import CALM_PER_SECOND, CROWD, MOMENT_SECONDS, Gathering


class Clock:
    """Time passes when somebody sleeps, and when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(gathering, "time", clock)
    return clock


@pytest.fixture
def selector(clock: Clock) -> Iterator[Gathering]:
    """There is always something to read."""
    here, there = socket.socketpair()
    with here, there, Gathering() as selector:
        selector.register(here, selectors.EVENT_READ)
        there.send(b"x")
        yield selector


def test_the_first_things_are_not_waited_for(selector: Gathering, clock: Clock) -> None:
    for _ in range(CROWD):
        assert selector.select(60)

    assert clock.slept == []


def test_a_crowd_is_gathered_for_as_long_as_it_is_one(selector: Gathering, clock: Clock) -> None:
    for _ in range(CROWD + 3):
        assert selector.select(None)

    assert clock.slept == [MOMENT_SECONDS] * 3


def test_after_a_quiet_while_nothing_is_waited_for(selector: Gathering, clock: Clock) -> None:
    for _ in range(100 * CROWD):
        selector.select(60)
    clock.now += 2 * CROWD / CALM_PER_SECOND
    selector.select(60)
    clock.slept.clear()
    selector.select(60)

    assert clock.slept == []


def test_what_comes_steadily_but_not_thick_is_never_waited_for(selector: Gathering, clock: Clock) -> None:
    for _ in range(100 * CROWD):
        clock.now += 1 / CALM_PER_SECOND
        selector.select(60)

    assert clock.slept == []


def test_a_timer_that_is_due_is_not_late(selector: Gathering, clock: Clock) -> None:
    for _ in range(CROWD + 1):
        selector.select(60)
    clock.slept.clear()

    for timeout in (0, MOMENT_SECONDS / 2, MOMENT_SECONDS):
        selector.select(timeout)

    assert clock.slept == []


def test_a_loop_runs_on_it() -> None:
    async def work() -> int:
        began = time.monotonic()
        await asyncio.sleep(0.01)
        assert time.monotonic() - began >= 0.01
        assert await asyncio.to_thread(lambda: 5) == 5
        return 7

    assert gathering.run(work()) == 7
