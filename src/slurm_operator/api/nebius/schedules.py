"""When a CronJob runs, as in crontab: whether Kubernetes would take a schedule, and what is wrong with it."""

import re
from typing import Final

MACROS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

# Name, smallest and largest value, and words for values, the first of which stands for the smallest.
_FIELDS: Final[tuple[tuple[str, int, int, tuple[str, ...]], ...]] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)
_ITEM: Final = re.compile(r"(?P<from>\*|\?|[0-9a-z]+)(-(?P<to>[0-9a-z]+))?(/(?P<step>[0-9]+))?")
_EVERY: Final = re.compile(r"@every ([0-9.]+(ns|us|µs|ms|s|m|h))+")


def trouble(schedule: str) -> str | None:
    """What is wrong with it, for the person who wrote it; None if Kubernetes takes it."""
    if "TZ=" in schedule:
        return "must not name a time zone: Kubernetes refuses that; it runs by the time of the control plane"
    if schedule in MACROS or _EVERY.fullmatch(schedule):
        return None
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"must have five fields, such as `0 */3 * * *`, or be one of {', '.join(MACROS)}"
    for part, (name, least, most, words) in zip(parts, _FIELDS, strict=True):
        if not all(_is_item(item, least, most, words) for item in part.lower().split(",")):
            return (
                f"has {part!r} as its {name}; it must be {least} to {most}, `*`, or a list or steps of these"
            )
    return None


def _is_item(item: str, least: int, most: int, words: tuple[str, ...]) -> bool:
    found = _ITEM.fullmatch(item)
    if found is None or found["step"] == "0":
        return False
    if found["from"] in ("*", "?"):
        return found["to"] is None
    first = _value(found["from"], least, words)
    last = _value(found["to"], least, words) if found["to"] is not None else first
    return first is not None and last is not None and least <= first <= last <= most


def _value(text: str, least: int, words: tuple[str, ...]) -> int | None:
    if text in words:
        return least + words.index(text)
    return int(text) if text.isdecimal() else None
