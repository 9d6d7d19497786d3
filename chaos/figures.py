"""Results in sums and words, for tables."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from chaos.record import Result


def table(columns: Mapping[str, Sequence[Result]]) -> Iterator[str]:
    """A column for each series, a line for each sum."""
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    tables = [_sums(results) for results in columns.values()]
    for what in tables[0]:
        yield f"| {what} | {' | '.join(table[what] for table in tables)} |"


def _sums(results: Sequence[Result]) -> dict[str, str]:
    settled = [result.settled_s for result in results if result.settled_s >= 0]
    return {
        "runs": f"{len(results):,}",
        "faults that hit": f"{sum(len(result.faults) for result in results):,}",
        "jobs that ran": f"{sum(result.jobs for result in results):,}",
        "**opportunities**: nodes that a fault was about while a job ran there": (
            f"**{sum(result.opportunities for result in results):,}**"
        ),
        "nodes with a job while something broke that they depend on": (
            f"{sum(result.in_the_dark for result in results):,}"
        ),
        "**jobs lost**": f"**{sum(len(result.lost) for result in results):,}**",
        "runs that lost a job": f"{sum(bool(result.lost) for result in results):,}",
        "jobs excused: their machine was unplugged, or their slurmd killed": (
            f"{sum(result.excused for result in results):,}"
        ),
        "submitted, never started: slurmctld did not take them": (
            f"{sum(result.never_started for result in results):,}"
        ),
        "runs that did not settle": f"{sum(bool(result.trouble) for result in results):,}",
        "from the last repair until all is well: median": f"{share(settled, 0.5):.0f} s",
        "… 95 of 100 within": f"{share(settled, 0.95):.0f} s",
        "… longest": f"{max(settled, default=0):.0f} s",
    }


def share(values: Iterable[float], part: float) -> float:
    """The smallest value that at least this part of all does not exceed; 0 when there are none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else 0.0


def came_to(result: Result) -> str:
    """One run in a few words."""
    lost = f"lost {len(result.lost)} of {result.jobs} jobs" if result.lost else "lost no job"
    return f"{lost}, {'did not settle' if result.trouble else f'settled in {result.settled_s:.0f} s'}"
