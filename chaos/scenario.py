"""What a seed decides: which faults, in which order, how many jobs and how long, and the pauses between."""

import random
from collections.abc import Collection
from dataclasses import dataclass

from chaos.faults import Fault, Sort, faults_of
from chaos.subjects import Subject

# Pulling a plug costs a minute and excuses jobs, so it is rare.
_DEADLY_SHARE = 0.06


@dataclass(frozen=True)
class Draw:
    """One run before it happens. Each fault makes its own choices from `chance(fault)`."""

    seed: int
    faults: tuple[Fault, ...]
    jobs: tuple[int, ...]  # Their seconds. They are submitted first, all at once.
    later: tuple[int, ...]  # One after each fault.
    pauses: tuple[float, ...]  # One after each fault.

    def chance(self, fault: Fault) -> random.Random:
        """Its own: what one fault meets does not change what the next one draws."""
        return random.Random(f"{self.seed} {fault.name}")  # noqa: S311 - chance, not secrets


def draw(seed: int, subject: Subject, only: Collection[str] = ()) -> Draw:
    """All workers are wanted away, perhaps one for itself, and one or two things break meanwhile."""
    drawn = [fault for fault in faults_of(subject).values() if not only or fault.name in only]
    chance = random.Random(seed)  # noqa: S311 - chance, not secrets
    faults: list[Fault] = []
    for sort, least, most in ((Sort.MASS, 1, 1), (Sort.WISH, 0, 1), (Sort.WEATHER, 1, 2)):
        _add(faults, chance, _of(sort, drawn), chance.randint(least, most))
    if chance.random() < _DEADLY_SHARE:
        _add(faults, chance, _of(Sort.DEADLY, drawn), 1)
    chance.shuffle(faults)
    return Draw(
        seed,
        tuple(faults),
        jobs=tuple(chance.randint(6, 11) for _ in range(chance.randint(5, 8))),
        later=tuple(chance.randint(3, 6) for _ in faults),
        pauses=tuple(chance.uniform(0.2, 2.0) for _ in faults),
    )


def _of(sort: Sort, faults: Collection[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.sort is sort]


def _add(faults: list[Fault], chance: random.Random, choices: list[Fault], count: int) -> None:
    for fault in chance.sample(choices, len(choices)):
        if count and not any(fault.clashes(other) for other in faults):
            faults.append(fault)
            count -= 1
