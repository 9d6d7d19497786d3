"""Stories that show what a mutant does: which of them breaks a promise with it."""

import signal
from collections.abc import Iterator
from functools import cache
from types import FrameType

from simulation.deeds import Happening
from simulation.runs import Story, play, set_back
from simulation.scenes import WIDE, Scene
from simulation.test_late_mutants import CHANGED_BACK, FORGOTTEN, late
from simulation.test_mutants import test_one_condition_less_is_noticed as by_hand

SEEDS, LATE_SEEDS, WIDE_SEEDS = 14, 3, 8

# A story takes a second at most. One that turns in circles has been noticed, too.
CPU_SECONDS = 30.0


class DoesNotEndError(Exception):
    """More processor time than any story takes."""


@cache
def stories() -> dict[str, Story]:
    """Those that were written for one condition each, then those of the first seeds."""
    return dict(_stories())


def _stories() -> Iterator[tuple[str, Story]]:
    for row in _rows(by_hand):
        happenings, scene = row.values[3]
        yield f"of {row.id}", Story(30, happenings, scene=scene)
    for happenings, seeds in ((CHANGED_BACK, (20, 21)), (FORGOTTEN, (2, 10))):
        yield from ((f"late, {seed}", late(happenings, seed)) for seed in seeds)
    yield from ((f"set back {seed}", set_back(seed)) for seed in (4, 6))
    yield from ((f"frozen {seed}", frozen(seed)) for seed in range(1, 4))
    yield from ((f"seed {seed}, SCENE=wide", Story.of(seed, scene=WIDE)) for seed in range(1, WIDE_SEEDS + 1))
    yield from ((f"seed {seed}", Story.of(seed)) for seed in range(1, SEEDS + 1))
    yield from ((f"seed {seed}, LATE=0.3", Story.of(seed, late=0.3)) for seed in range(1, LATE_SEEDS + 1))


def frozen(seed: int) -> Story:
    """Whoever acts freezes while there is work, and then the other one does; and once more."""
    away = (
        Happening(20, "submit", 1, 39),
        Happening(1, "freeze_operator", 1, 40),
        Happening(2, "change_image", 0, 5),
    )
    back = (
        Happening(45, "cut_off_operator", 1, 30),
        Happening(3, "scale", 0, 1),
        Happening(40, "crash_leader"),
    )
    return Story(seed, (*away, *back, Happening(2, "scale", 0, 3), Happening(30, "calm")), scene=Scene(WIDE))


def _rows(test: object) -> list:
    [mark] = [one for one in getattr(test, "pytestmark", ()) if one.name == "parametrize"]
    return list(mark.args[1])


def breaks(story: Story) -> str:
    """Why it is no good, in a line; empty when all promises are kept."""
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        return (play(story).broken or "").strip().split("\n")[0]
    except DoesNotEndError:
        return "it does not end"
    except Exception as error:  # The operator, or its world, fell over it.
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise DoesNotEndError
