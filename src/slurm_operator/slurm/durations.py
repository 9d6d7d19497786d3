"""Lengths of time as Slurm writes them: `90`, `12:00:00`, `7-0`, UNLIMITED; and numbers as REST has them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from slurm_operator import wire

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


def written(length: timedelta) -> str:
    """As `squeue` and `scontrol` show it: `1-02:03:04`, `02:03:04`, UNLIMITED. `duration` reads it back."""
    if length == FOREVER:
        return "UNLIMITED"
    seconds = int(length.total_seconds())
    hours, rest = divmod(seconds % 86400, 3600)
    clock = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{seconds // 86400}-{clock}" if seconds >= 86400 else clock


class Number(wire.Record):
    """A number in Slurm's REST API: it may be left out, or be infinite.

    Both `{"set": true, "infinite": true}` and `{"set": false, "infinite": true}` were seen for infinite.
    """

    set: bool = False
    infinite: bool = False
    number: int | float = 0

    @property
    def value(self) -> int | float | None:
        """The number; None when it is left out or infinite."""
        return self.number if self.set and not self.infinite else None

    @property
    def is_unset(self) -> bool:
        return not self.set and not self.infinite

    def as_time(self) -> datetime | None:
        """Seconds since 1970 as a moment; None for never, which is also what 0 means."""
        value = self.value
        return datetime.fromtimestamp(value, UTC) if value else None

    def as_minutes(self) -> timedelta | None:
        """A time limit, which Slurm counts in minutes. FOREVER when infinite, None when left out."""
        return self._length(timedelta(minutes=1))

    def as_seconds(self) -> timedelta | None:
        """A length in seconds. FOREVER when infinite, None when left out."""
        return self._length(timedelta(seconds=1))

    def _length(self, unit: timedelta) -> timedelta | None:
        if self.infinite:
            return FOREVER
        return None if self.value is None else unit * self.value


def number(value: float | None) -> Number:
    """`value` as the REST API wants it; left out when None."""
    return Number() if value is None else Number(set=True, number=value)


def rest_minutes(length: timedelta) -> Number:
    """A time limit as the REST API wants it: started minutes, or infinite."""
    return Number(set=True, infinite=True) if length == FOREVER else number(minutes(length))
