"""Lengths of time as Slurm writes them: `90`, `12:00:00`, `7-0`, UNLIMITED."""

import re
from datetime import timedelta
from typing import Final

# The longest there is: what `UNLIMITED` becomes where an actual length is needed.
FOREVER: Final = timedelta.max

UNLIMITED_WORDS = frozenset({"unlimited", "infinite", "-1"})

# sbatch(1), --time: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and
# days-hours:minutes:seconds. Fields may be larger than their clock: 90:00:00 is ninety hours. `1-` is a day.
_CLOCK = re.compile(r"(?:(?P<days>\d{1,6})-(?!:))?(?P<fields>\d{1,8}(?::\d{1,8}){0,2})?", re.ASCII)


class DurationError(ValueError):
    """Not a length of time in any of Slurm's forms."""


def duration(text: str) -> timedelta:
    """The length of time; FOREVER for UNLIMITED and INFINITE."""
    if text.lower() in UNLIMITED_WORDS:
        return FOREVER
    matched = _CLOCK.fullmatch(text)
    if matched is None or not text:
        raise DurationError(
            f"{text!r} is no length of time; write minutes, hours:minutes:seconds, "
            "days-hours:minutes:seconds or UNLIMITED"
        )
    fields = [int(field) for field in (matched["fields"] or "0").split(":")]
    if matched["days"] is not None:
        hours, minutes, seconds = (*fields, 0, 0)[:3]
        return timedelta(days=int(matched["days"]), hours=hours, minutes=minutes, seconds=seconds)
    if len(fields) == 3:
        return timedelta(hours=fields[0], minutes=fields[1], seconds=fields[2])
    minutes, seconds = (*fields, 0)[:2]
    return timedelta(minutes=minutes, seconds=seconds)


def minutes(length: timedelta) -> int:
    """Whole minutes, a started one counted: Slurm keeps its time limits so."""
    return -(-length // timedelta(minutes=1))
