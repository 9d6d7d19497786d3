"""What the value of a key may be. Each check gives back what is wrong with a value, or None.

They refuse what Slurm 26.05 refuses and take what it takes; the tests compare both on real daemons.
"""

import re
from collections.abc import Callable, Sequence

from slurm_operator.slurm.durations import UNLIMITED_WORDS, DurationError, duration

Check = Callable[[str], str | None]

_UNLIMITED = frozenset({"unlimited", "infinite"})
_NUMBER = re.compile(r"\+?(?:0x[0-9a-f]{1,16}|0[0-7]{0,22}|[1-9]\d{0,19})", re.IGNORECASE | re.ASCII)
_DECIMAL = re.compile(
    r"[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:e[-+]?\d{1,3})?", re.IGNORECASE | re.ASCII
)
_YES_NO = frozenset({"yes", "no", "true", "false", "up", "down", "1", "0"})
_PORTS = re.compile(r"\+?(\d{1,20})(?:-(\d{1,20}))?", re.ASCII)
_HOST = re.compile(r"[^()]*(?:\([^()]*\))?")
_PURGE = re.compile(r"\d{1,9}(?:h(?:ours?)?|d(?:ays?)?|m(?:onths?)?)?", re.IGNORECASE | re.ASCII)
_LEVELS = ("quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5")


def text(value: str) -> str | None:
    """Anything; only the daemon that uses it can tell."""
    return None


def number(low: int, high: int, *, kilo: bool = True, unlimited: bool = True) -> Check:
    """A whole number: decimal, 0x hexadecimal or 0 octal, with K behind it for 1024; or UNLIMITED."""

    def check(value: str) -> str | None:
        if value.lower() in _UNLIMITED:
            return None if unlimited else f"{value} is no limit here"
        digits = value[:-1] if kilo and value[-1:] in ("k", "K") else value
        if not _NUMBER.fullmatch(digits):
            return f"{value!r} is no number"
        found = _integer(digits) * (1024 if digits != value else 1)
        if found < low:
            return f"{value} is less than {low}"
        return f"{value} is larger than {high}" if found > high else None

    return check


uint16 = number(0, 2**16 - 1, kilo=False)
uint32 = number(0, 2**32 - 1)
uint64 = number(0, 2**64 - 1)


def decimal(value: str) -> str | None:
    if value.lower() in _UNLIMITED or _DECIMAL.fullmatch(value):
        return None
    return f"{value!r} is no number"


def yes_no(value: str) -> str | None:
    return None if value.lower() in _YES_NO else f"{value!r} is neither yes nor no"


def time_length(value: str) -> str | None:
    """One of Slurm's forms. What it makes of more digits than a time can have is left to Slurm."""
    if len(value) > 8 and value.isdecimal():
        return None
    try:
        duration(value)
    except DurationError as error:
        return str(error)
    return None


def time_limit(value: str) -> str | None:
    """The same, but neither nothing nor without an end."""
    if value.lower() in UNLIMITED_WORDS or (len(value) > 8 and value.isdecimal()):
        return f"{value} is no limit here"
    return time_length(value) or (None if duration(value) else f"{value} is no time at all")


def port_range(value: str) -> str | None:
    matched = _PORTS.fullmatch(value)
    if matched and 0 < int(matched[1]) <= int(matched[2] or matched[1]):
        return None
    return f"{value!r} is no port and no range of ports"


def controller_host(value: str) -> str | None:
    """`name` or `name(address)`."""
    return None if _HOST.fullmatch(value) else f"{value!r} is not of the form host or host(address)"


def purge_after(value: str) -> str | None:
    """`12months`, `30days`, `24hours`; a bare number counts months."""
    return None if _PURGE.fullmatch(value) else f"{value!r} is not of the form 12months, 30days or 24hours"


def log_level(value: str) -> str | None:
    """A level by name or, as in old files, by number."""
    return None if value[:1].isdigit() or value.lower() in _LEVELS else _unlike(value, _LEVELS)


def oversubscribe(value: str) -> str | None:
    """NO, EXCLUSIVE, or YES and FORCE with how many jobs may share: FORCE:4."""
    word, colon, _ = value.lower().partition(":")
    if word in ("yes", "force") or (word in ("no", "exclusive") and not colon):
        return None
    return _unlike(value, ["NO", "EXCLUSIVE", "YES", "YES:count", "FORCE", "FORCE:count"])


def one_of(words: str) -> Check:
    """One of these words, in any case."""
    known = frozenset(words.lower().split())
    return lambda value: None if value.lower() in known else _unlike(value, words.split())


def words_of(words: str) -> Check:
    """Any of these words, in any case, with commas between; nothing between two commas is passed over."""
    known = frozenset(words.lower().split())

    def check(value: str) -> str | None:
        strangers = [part for part in value.split(",") if part and part.lower() not in known]
        return _unlike(strangers[0], words.split()) if strangers else None

    return check


def limits_of(words: str) -> Check:
    """Resource limits by name, in capitals, with or without RLIMIT_ before; or ALL or NONE alone."""
    known = frozenset(words.split())

    def check(value: str) -> str | None:
        if value in ("ALL", "NONE"):
            return None
        strangers = [part for part in value.split(",") if part and part.removeprefix("RLIMIT_") not in known]
        return _unlike(strangers[0], ["ALL", "NONE", *words.split()]) if strangers else None

    return check


def _integer(digits: str) -> int:
    plain = digits.removeprefix("+").lower()
    is_octal = len(plain) > 1 and plain[0] == "0" and plain[1] != "x"
    return int(plain, 8 if is_octal else 0)


def _unlike(value: str, words: Sequence[str]) -> str:
    return f"{value!r} is none of {', '.join(words)}"
