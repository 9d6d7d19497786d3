"""What one part of the decision comes to: actions in stages, and when to look again."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Action, Wait
from slurm_operator.plan.plan import Lane, lane


@dataclass(frozen=True)
class Step:
    """`asks_slurm`: what comes next depends on Slurm, so it should be read often."""

    stages: tuple[tuple[Action, ...], ...] = ()
    look_again: timedelta | None = None
    asks_slurm: bool = False

    def lane(self, name: str) -> Lane:
        return lane(name, *self.stages)


NOTHING = Step()


def step(*stages: Iterable[Action], seconds: float | None = None, asks_slurm: bool = False) -> Step:
    again = None if seconds is None else timedelta(seconds=seconds)
    return Step(tuple(filter(None, map(tuple, stages))), again, asks_slurm)


def wait(
    subject: str, reason: Reason, message: str, *, seconds: float | None = None, asks_slurm: bool = False
) -> Step:
    return step(
        [Wait(subject=subject, reason=reason, message=message)], seconds=seconds, asks_slurm=asks_slurm
    )


def look(waits: Iterable[timedelta | None], *, asks_slurm: bool = False) -> Step:
    """Nothing to do; to be looked at again after the shortest of these times. What is over is no time."""
    ahead = (one for one in waits if one is not None and one > timedelta(0))
    return Step(look_again=min(ahead, default=None), asks_slurm=asks_slurm)


def soonest(steps: Iterable[Step]) -> timedelta | None:
    return min((one.look_again for one in steps if one.look_again is not None), default=None)
