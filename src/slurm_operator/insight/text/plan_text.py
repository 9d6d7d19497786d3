"""A forecast for people. The last word is always that nothing was done."""

from collections.abc import Iterator
from datetime import timedelta

from rich.text import Text

from slurm_operator.insight.forecast.differences import Difference
from slurm_operator.insight.forecast.outcome import Effect, Forecast, JobInTheWay
from slurm_operator.insight.text import output

_WIDTH = 9
_MOST_FIELDS = 12


def text(found: Forecast) -> Text:
    return output.joined([*_lines(found), output.paragraph(output.Cell("Nothing was done.", output.HEAD))])


def _lines(found: Forecast) -> Iterator[Text]:
    if found.is_empty:
        yield _line("", "This changes nothing.")
    for verb, effects, style in (
        ("create", found.created, output.GOOD),
        ("change", found.changed, output.BUSY),
        ("restart", found.restarted, output.BUSY),
        ("delete", found.deleted, output.BAD),
    ):
        for effect in effects:
            yield _line(verb, output.Cell(_effect_name(effect), style))
            yield from _fields(effect.fields)
    for label, jobs, how in (
        ("job", found.waited_for, "is waited for"),
        ("job", found.waiting, "would wait"),
        ("job", found.ended, "would be ended"),
    ):
        for job in jobs:
            yield _line(label, output.Cell(f"{_job(job)} {how}: {job.why}", output.BUSY))
    for one in found.refused:
        yield _line("refused", output.Cell(one, output.BAD))
    for kept in found.kept:
        yield _line("keeps", output.Cell(_effect_name(kept), output.BUSY))
    for one in found.stuck:
        yield _line("stays", output.Cell(f"waiting: {one}", output.BAD))
    if not found.is_empty and not found.refused:
        yield _line("takes", _time(found))
    for unseen in found.unseen:
        right = f" (the right to {unseen.right} is missing)" if unseen.right else ""
        yield _line(
            "unseen",
            output.Cell(f"{unseen.what}: {unseen.why}{right}. The plan may lack something.", output.DIM),
        )


def _effect_name(effect: Effect) -> str:
    return f"{effect.kind} {effect.name}"


def _fields(fields: tuple[Difference, ...]) -> Iterator[Text]:
    for field in fields[:_MOST_FIELDS]:
        if "\n" in field.before + field.after or len(field.before) + len(field.after) > 100:
            yield _line("", f"  {field.field}:")
            yield from (
                _line("", output.Cell(f"    - {line}", output.BAD)) for line in field.before.splitlines()
            )
            yield from (
                _line("", output.Cell(f"    + {line}", output.GOOD)) for line in field.after.splitlines()
            )
        else:
            yield _line("", f"  {field.field}: {field.before or '(none)'} → {field.after or '(none)'}")
    if len(fields) > _MOST_FIELDS:
        yield _line("", f"  and {len(fields) - _MOST_FIELDS} more fields")


def _job(job: JobInTheWay) -> str:
    left = f"{duration(job.seconds_left)} left" if job.seconds_left is not None else "without a time limit"
    name = f" ({job.name})" if job.name else ""
    return f"{job.job_id}{name} of {job.user}, {left},"


def _time(found: Forecast) -> str:
    if found.seconds is None:
        return "nobody knows how long: a job without a time limit is in the way"
    if found.waited_for:
        return (
            f"at most {duration(found.seconds)}, by the time limits of these jobs; less when they end sooner"
        )
    return f"about {duration(max(found.seconds, 1))}, and what machines need to pull images and start"


def duration(seconds: int) -> str:
    """1 h 5 min, 12 s: as exact as people need it."""
    left = timedelta(seconds=seconds)
    days, rest = left.days, left.seconds
    hours, minutes = rest // 3600, rest % 3600 // 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{rest} s"


def _line(label: str, what: str | output.Cell) -> Text:
    return output.paragraph(output.Cell(f"{label:<{_WIDTH}}", output.DIM), what)
