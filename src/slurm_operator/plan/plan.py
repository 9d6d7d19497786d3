"""A plan: independent lanes of stages, and what became of them."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.plan.actions import Action, Tell, Wait


class Lane(wire.Record):
    """Work that belongs together. Stages run one after the other; the actions of a stage run at once.

    A failure stops its own lane and no other. Notes are for people and hold up nobody: what there is no time
    for is left to the next pass.
    """

    name: str
    stages: tuple[tuple[Action, ...], ...]
    is_note: bool = False

    def actions(self) -> Iterator[Action]:
        for stage in self.stages:
            yield from stage


class Plan(wire.Record):
    """Everything one pass decided about one object."""

    lanes: tuple[Lane, ...] = ()
    look_again: timedelta | None = None
    waits_on: tuple[ObjectKey, ...] = ()  # Controllers whose Slurm clusters should be read often meanwhile.

    def actions(self) -> Iterator[Action]:
        for lane in self.lanes:
            yield from lane.actions()

    @property
    def waits(self) -> list[Wait]:
        return [action for action in self.actions() if isinstance(action, Wait)]

    @property
    def is_idle(self) -> bool:
        """Nothing to do, and nothing held back."""
        return all(isinstance(action, Tell) for action in self.actions())


def lane(name: str, *stages: Iterable[Action], is_note: bool = False) -> Lane:
    """A lane without its empty stages."""
    filled = [actions for stage in stages if (actions := tuple(stage))]
    return Lane(name=name, stages=tuple(filled), is_note=is_note)


def plan(*lanes: Lane, look_again: timedelta | None = None, waits_on: tuple[ObjectKey, ...] = ()) -> Plan:
    """A plan without its empty lanes."""
    filled = tuple(lane for lane in lanes if lane.stages)
    return Plan(lanes=filled, look_again=look_again, waits_on=waits_on)


class Failure(wire.Record):
    """An action that was tried and did not work, in the words of whoever refused it.

    `is_refused`: it is no use to repeat it before `retry_after`, unless something changes. `is_held`: it was
    not tried this time, because it was refused before.
    """

    action: Action
    error: str
    retry_after: float | None = None
    is_refused: bool = False
    is_held: bool = False


class Outcome(wire.Record):
    """What became of a plan. `skipped` are actions behind a failed stage, notes there was no time for, and
    what nobody needs any more."""

    done: tuple[Action, ...] = ()
    failed: tuple[Failure, ...] = ()
    skipped: tuple[Action, ...] = ()

    @property
    def is_complete(self) -> bool:
        return not self.failed

    @property
    def changed_anything(self) -> bool:
        """Whether something was done, or tried."""
        is_tried = any(not failure.is_held for failure in self.failed)
        return is_tried or not all(isinstance(action, Wait | Tell) for action in self.done)
