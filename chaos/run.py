"""One run: jobs, faults, mending, and the reckoning."""

import random
import time
from dataclasses import asdict, dataclass

from chaos.faults import FAULTS, Fault
from chaos.jobs import Fate
from chaos.stage import Stage


@dataclass(frozen=True)
class Result:
    """What one run came to. `opportunities`: nodes that a fault hit while a job ran there."""

    seed: int
    faults: tuple[str, ...]
    jobs: int
    opportunities: int
    lost: tuple[int, ...]
    excused: int
    settled_s: float
    trouble: str = ""

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def drawn(chance: random.Random, only: tuple[str, ...] = ()) -> list[Fault]:
    """One to three faults. Pulling a plug is rare: it costs a minute, and excuses jobs."""
    names = list(
        only or (name for name, fault in FAULTS.items() if not fault.is_deadly or chance.random() < 0.2)
    )
    return [FAULTS[name] for name in chance.sample(names, min(len(names), chance.randint(1, 3)))]


def run(stage: Stage, seed: int, only: tuple[str, ...] = ()) -> Result:
    """Everything that is decided here comes from the seed; when jobs start and end is up to the machine."""
    chance = random.Random(seed)  # noqa: S311 - chance, not secrets
    stage.jobs.clear()
    faults = drawn(chance, only)
    for _ in range(chance.randint(4, 8)):
        stage.submit(chance)
    _wait(lambda: len(stage.busy()) >= 2, 20)
    opportunities, trouble = 0, ""
    for fault in faults:
        busy = stage.busy()
        opportunities += len(busy & fault.hit(stage, chance))
        stage.submit(chance)
        time.sleep(chance.uniform(0.5, 6))
    for fault in faults:
        fault.mend(stage)
    try:
        settled = stage.settle(lambda: None)
    except TimeoutError as error:
        settled, trouble = -1.0, str(error)
    fates = {job.number: job.fate for job in stage.jobs}
    return Result(
        seed,
        tuple(fault.name for fault in faults),
        jobs=sum(fate is not Fate.WAITING for fate in fates.values()),
        opportunities=opportunities,
        lost=tuple(number for number, fate in fates.items() if fate is Fate.LOST),
        excused=sum(fate is Fate.EXCUSED for fate in fates.values()),
        settled_s=round(settled, 1),
        trouble=trouble,
    )


def _wait(condition, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)
