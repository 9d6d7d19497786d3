"""One run: jobs, faults, repairs, and the reckoning."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial

from chaos.faults import Sort
from chaos.impact import WORKERS, Missed
from chaos.jobs import Fate
from chaos.record import Result
from chaos.scenario import Draw, draw
from chaos.stage import Stage
from slurm_local.errors import LocalError

_WISHES = {Sort.MASS, Sort.WISH}

# What breaks last stays broken this long, so that somebody notices.
_WEATHER_S = 4.0


class Run:
    """A draw, played on a stage."""

    def __init__(self, stage: Stage, drawn: Draw) -> None:
        self._stage, self._draw = stage, drawn
        self._hit: list[str] = []
        self._missed: list[str] = []
        self._over_at: dict[str, float] = {}
        self._opportunities = self._in_the_dark = 0

    def play(self) -> Result:
        begin, trouble, settled = time.monotonic(), "", -1.0
        self._stage.jobs.clear()
        try:
            self._stage.submit(self._draw.jobs)
            _wait(lambda: len(self._stage.busy()) >= WORKERS, 10)
            self._torment()
            self._mend()
            settled = self._stage.settle()
        except Exception as error:  # Whatever it is: the next seed gets a cluster of its own.
            trouble = f"{type(error).__name__}: {error}"
        return self._result(settled, time.monotonic() - begin, trouble)

    def _torment(self) -> None:
        broken_at = 0.0
        for fault, seconds, pause in zip(self._draw.faults, self._draw.later, self._draw.pauses, strict=True):
            busy = self._stage.busy()
            try:
                blow = fault.hit(self._stage, self._draw.chance(fault))
            except (Missed, LocalError):
                self._missed.append(fault.name)
            else:
                self._hit.append(fault.name)
                self._over_at[fault.name] = time.monotonic() + fault.lasts_s
                self._opportunities += blow.opportunities(busy)
                self._in_the_dark += 0 if blow.nodes or fault.sort in _WISHES else len(busy)
            if fault.sort not in _WISHES:
                broken_at = time.monotonic()
            self._stage.submit([seconds])
            time.sleep(pause)
        time.sleep(max(0.0, broken_at + _WEATHER_S - time.monotonic()))

    def _mend(self) -> None:
        """Daemons and wires first: whoever takes a drain back needs them. Of these, what lasts comes last."""
        for fault in sorted(self._draw.faults, key=lambda fault: (fault.sort in _WISHES, fault.lasts_s)):
            time.sleep(max(0.0, self._over_at.get(fault.name, 0.0) - time.monotonic()))
            _wait(partial(_is_done, partial(fault.repair, self._stage)), 60)
        _wait(partial(_is_done, self._stage.wish), 60)

    def _result(self, settled: float, took: float, trouble: str) -> Result:
        fates = Counter(job.fate for job in self._stage.jobs)
        return Result(
            seed=self._draw.seed,
            faults=tuple(self._hit),
            missed=tuple(self._missed),
            jobs=fates.total() - fates[Fate.NEVER_STARTED],
            opportunities=self._opportunities,
            in_the_dark=self._in_the_dark,
            lost=tuple(job.number or 0 for job in self._stage.jobs if job.fate is Fate.LOST),
            excused=fates[Fate.EXCUSED],
            never_started=fates[Fate.NEVER_STARTED],
            settled_s=round(settled, 1),
            took_s=round(took, 1),
            trouble=trouble,
        )


def run(stage: Stage, seed: int, only: Collection[str] = ()) -> Result:
    """Everything that is decided here comes from the seed; when jobs start and end is up to the machine."""
    return Run(stage, draw(seed, stage.subject, only)).play()


def _is_done(deed: Callable[[], None]) -> bool:
    """False when there was nobody to ask."""
    try:
        deed()
    except Missed:
        return False
    return True


def _wait(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.2)
