"""Durations as Go writes them (`1h30m`), because that is what people type in Kubernetes manifests."""

import re
from datetime import timedelta
from typing import Final

# What Go's time.ParseDuration accepts, no more and no less.
PATTERN: Final = r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


def parse(text: str) -> timedelta:
    """`1h30m` as a timedelta; raises ValueError for anything Go would refuse."""
    if not re.fullmatch(PATTERN, text):
        raise ValueError(f"{text!r} is not a duration; write it like 90s, 15m or 1h30m")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


def text(duration: timedelta) -> str:
    """The shortest way to write it: `1h30m`, `45s`, `1.5s`, `0s`."""
    if duration < timedelta(0):
        return "-" + text(-duration)
    minutes, seconds = divmod(duration, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h"] if hours else []
    parts += [f"{minutes}m"] if minutes else []
    if seconds or not parts:
        parts.append(f"{seconds.total_seconds():.6f}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)
