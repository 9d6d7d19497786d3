"""A plugin of pytest: instead of running the tests that it has found, it tries out mutants, each in a fork.

So Python starts and collects once. `python -m simulation.mutation` says which mutants, by `PLANS`.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from simulation.mutant_stories import breaks, stories
from testing.mutation.applied import apply
from testing.mutation.edits import Mutant
from testing.mutation.noticed import NOBODY, STORY, TEST, Noticed

# Each mutant, the names of stories to play with it, and what the names of its tests begin with.
Attempt = tuple[Mutant, Sequence[str], Sequence[str]]


class Runner:
    """`told` hears of each result at once. Without a mutant all must be well."""

    def __init__(
        self, attempts: Callable[[], Iterable[Attempt]], told: Callable[[Mutant, Noticed], None]
    ) -> None:
        self.attempts = attempts
        self.told = told

        self._good: set[str] = set()

    def check(self, found: Noticed, session: pytest.Session) -> None:
        """Whoever noticed something finds nothing without a mutant. Asked once for each."""
        if found.by == NOBODY or not found.what or found.what in self._good:
            return
        played, tests = ([found.what], []) if found.by == STORY else ([], [found.what])
        control = in_a_fork(lambda: noticed(session, played, tests))
        if control.by != NOBODY:
            raise session.Interrupted(f"without a mutant, too: {control}")
        self._good.add(found.what)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests could not be collected")
        for mutant, played, tests in self.attempts():
            found = in_a_fork(lambda: noticed(session, played, tests, mutant))  # noqa: B023
            self.check(found, session)
            self.told(mutant, found)
        return True


def noticed(
    session: pytest.Session, played: Sequence[str], tests: Sequence[str], mutant: Mutant | None = None
) -> Noticed:
    if mutant is not None:
        apply(mutant)
    for name in played:
        if why := breaks(stories()[name]):
            return Noticed(by=STORY, what=name, why=why)
    items = [item for start in tests for item in session.items if item.nodeid.startswith(start)]
    if (failed := first_that_fails(session, items)) is not None:
        return Noticed(by=TEST, what=failed)
    return Noticed(by=NOBODY, what="")


def first_that_fails(session: pytest.Session, items: list[pytest.Item]) -> str | None:
    for item, following in zip(items, [*items[1:], None], strict=False):  # There may be none.
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return item.nodeid
    return None


def in_a_fork(attempt: Callable[[], Noticed]) -> Noticed:
    """What it comes to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        try:
            found = attempt()
            os.write(writing, json.dumps([found.by, found.what, found.why]).encode())
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told: Any = pipe.read()
    os.waitpid(child, 0)
    if not told:
        raise RuntimeError("an attempt ended without a result; what it said stands above")
    by, what, why = json.loads(told)
    return Noticed(by=by, what=what, why=why)
