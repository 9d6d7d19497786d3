"""Carrying out a plan: lanes side by side, stages in order, actions of a stage with slow start.

Notes, a thousand of them maybe, get a moment: the status waits for the plan, and people for the status.
Whatever goes wrong ends in the outcome, never as an exception through the loop: people get a status on bad
days too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from slurm_operator.plan.actions import Action, does_nothing
from slurm_operator.plan.plan import Failure, Lane, Outcome, Plan

log = structlog.get_logger(__name__)

Perform = Callable[[Action], Awaitable[None]]

# So many actions of a stage, and so many notes, are under way at a time: as there are connections.
AT_ONCE = 32
# For so long new notes are begun.
NOTES_SECONDS = 1.0


class ActionFailed(Exception):  # noqa: N818 - it tells what happened; the loop turns it into a Failure
    """An action that did not work, in words for people. `retry_after` is the earliest sensible next try."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        is_refused: bool = False,
        is_held: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.is_refused = is_refused
        self.is_held = is_held

    def of(self, action: Action) -> Failure:
        return Failure(
            action=action,
            error=str(self),
            retry_after=self.retry_after,
            is_refused=self.is_refused,
            is_held=self.is_held,
        )


class NotSentToSlurm(ActionFailed):
    """A write that Slurm surely has not got: it was out of reach, or could not be read before."""


class OutOfTime(Exception):  # noqa: N818 - it tells what is the case
    """An action that was not begun, because what it rests on is too old by now. The next pass knows more."""


class Pointless(Exception):  # noqa: N818 - it tells what is the case
    """An action that nobody needs any more: what it is about is on its way out."""


@dataclass
class _Tally:
    done: list[Action] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    skipped: list[Action] = field(default_factory=list)


async def act(plan: Plan, perform: Perform, *, notes_seconds: float = NOTES_SECONDS) -> Outcome:
    """Try everything in the plan that may be tried, and say what became of each action."""
    if not plan.lanes:
        return Outcome()
    tally = _Tally()
    working, notes = _sorted(plan, tally)
    left = iter(notes)
    await asyncio.gather(
        *(_run_lane(lane, perform, tally) for lane in working),
        *(_run_notes(left, perform, tally, notes_seconds) for _ in notes[:AT_ONCE]),
    )
    tally.skipped.extend(action for lane in left for action in lane.actions())
    return Outcome(done=tuple(tally.done), failed=tuple(tally.failed), skipped=tuple(tally.skipped))


def _sorted(plan: Plan, tally: _Tally) -> tuple[list[Lane], list[Lane]]:
    """The lanes in which there is something to do, and the notes. What merely waits is done with."""
    working, notes = [], []
    for lane in plan.lanes:
        if all(map(does_nothing, lane.actions())):
            tally.done.extend(lane.actions())  # A thousand workers that wait for jobs need no task each.
        elif lane.is_note:
            notes.append(lane)
        else:
            working.append(lane)
    return working, notes


async def _run_lane(lane: Lane, perform: Perform, tally: _Tally) -> None:
    for number, stage in enumerate(lane.stages):
        if not await _run_stage(stage, perform, tally):
            tally.skipped.extend(action for later in lane.stages[number + 1 :] for action in later)
            return


async def _run_notes(left: Iterator[Lane], perform: Perform, tally: _Tally, seconds: float) -> None:
    """One after the other while there is time, the first in any case; several of us share what is left."""
    clock = asyncio.get_running_loop().time
    ends = clock() + seconds
    for lane in left:
        await _run_lane(lane, perform, tally)
        if clock() >= ends:
            return


async def _run_stage(stage: Sequence[Action], perform: Perform, tally: _Tally) -> bool:
    """One at first. Each that works lets one more go on beside it, and nobody waits for the slowest.

    So a refusal that would meet them all costs few requests.
    """
    if len(stage) == 1:
        return await _try(stage[0], perform, tally)
    left = iter(stage)
    is_good, hands = True, 1

    async def work(group: asyncio.TaskGroup) -> None:
        nonlocal is_good, hands
        for action in left:
            is_good = await _try(action, perform, tally) and is_good
            if not is_good:
                return
            if hands < min(AT_ONCE, len(stage)):
                hands += 1
                group.create_task(work(group))

    async with asyncio.TaskGroup() as group:
        await work(group)
    tally.skipped.extend(left)
    return is_good


async def _try(action: Action, perform: Perform, tally: _Tally) -> bool:
    try:
        if not does_nothing(action):
            await perform(action)
    except (OutOfTime, Pointless):
        tally.skipped.append(action)
        return False
    except ActionFailed as error:
        tally.failed.append(error.of(action))
        return False
    except Exception as error:
        # A bug of ours in one action must not take the pass down with it; it is told, with its trace.
        log.exception("action raised", action=type(action).__name__, reason=action.reason)
        tally.failed.append(Failure(action=action, error=f"{type(error).__name__}: {error}"))
        return False
    tally.done.append(action)
    return True
