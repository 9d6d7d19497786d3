"""Hostlist expressions: `gpu-[0-3,7],login` for six names, and back.

Slurm's own rules, checked against `scontrol show hostnames` and `scontrol show hostlist`. Where Slurm's
answer is wrong (numbers it cannot hold, brackets in brackets) we raise: a wrong name could hide a job.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, product
from math import prod

# Slurm refuses a range of more names than this, and a cluster cannot have more nodes ("higher than the
# maximum allowed (65536)"). It also keeps a hostile expression from filling our memory.
MAX_NAMES = 65536

# Numbers are unsigned 64 bit in Slurm, and the largest one means "did not fit": `a99999999999999999999` comes
# back as `a18446744073709551615`, silently. Up to 18 digits always fit.
_OVERFLOW = 2**64 - 1
_MAX_DIGITS = 20
MAX_SAFE_DIGITS = 18

_DIGITS = "0123456789"
_SEPARATORS = re.compile(r"[\s,]+", re.ASCII)
_TERM = re.compile(r"(?:[^\s,\[\]]|\[[^\[\]]*\])+", re.ASCII)
_BRACKETED = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


class HostlistError(ValueError):
    """Not a hostlist, too many names, or a name that Slurm would spell wrong."""


def expand(expression: str, limit: int = MAX_NAMES) -> list[str]:
    """Every name, in the order written. Repeated ones stay repeated. At most `limit` names, or an error."""
    names: list[str] = []
    for term in _terms(expression):
        names.extend(_names(term, limit - len(names)))
    return names


def compress(names: Iterable[str]) -> str:
    """One expression for these names: sorted, each once. Numbers at the end of names are folded to ranges."""
    numbers: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        prefix, digits = _split(name)
        _check_prefix(prefix, name)
        numbers.setdefault(prefix, []).append(digits)
    return ",".join(_folded(prefix, numbers[prefix]) for prefix in sorted(numbers))


def _terms(expression: str) -> Iterator[str]:
    """The parts between commas or white space, those inside brackets not counted."""
    at = 0
    while at < len(expression):
        if separators := _SEPARATORS.match(expression, at):
            at = separators.end()
        elif term := _TERM.match(expression, at):
            yield term[0]
            at = term.end()
        else:
            raise HostlistError(f"brackets do not match in {_shown(expression)}")


def _names(term: str, room: int) -> list[str]:
    """Every name of one term: the product of its brackets."""
    pieces = _BRACKETED.split(term)  # literal, bracket, literal, bracket, ..., literal
    choices = [_numbers(piece, term, room) if at % 2 else [piece] for at, piece in enumerate(pieces)]
    _check_room(prod(map(len, choices)), room, term)
    names = ["".join(parts) for parts in product(*choices)]
    for name in names:
        _split(name)
    return names


def _numbers(inside: str, term: str, room: int) -> list[str]:
    """What one bracket stands for: `08-10,12` is 08 09 10 12."""
    numbers: list[str] = []
    for part in inside.split(","):
        matched = _RANGE.fullmatch(part)
        if matched is None:
            raise HostlistError(f"{_shown(part)} is no number or range in {_shown(term)}")
        width = len(matched[1])
        first, last = _number(matched[1]), _number(matched[2] or matched[1])
        if last < first:
            raise HostlistError(f"the range {_shown(part)} runs backwards in {_shown(term)}")
        _check_room(len(numbers) + last - first + 1, room, term)
        # The first number sets the width of all: 8-010 counts 8, 9, 10 and 08-10 counts 08, 09, 10.
        numbers.extend(f"{number:0{width}d}" for number in range(first, last + 1))
    return numbers


def _number(digits: str) -> int:
    """Raises when Slurm cannot hold it."""
    significant = digits.lstrip("0")
    if len(significant) <= _MAX_DIGITS:
        number = int(significant or "0")
        if number < _OVERFLOW:
            return number
    raise HostlistError(
        f"{_shown(digits)} is too large a number for Slurm, which would put another in its place"
    )


def _split(name: str) -> tuple[str, str]:
    """A name without the digits at its end, and those digits. Raises when Slurm cannot hold their number."""
    prefix = name.rstrip(_DIGITS)
    digits = name[len(prefix) :]
    if len(digits) > MAX_SAFE_DIGITS:
        _number(digits)
    return prefix, digits


def _check_room(count: int, room: int, term: str) -> None:
    if count > room:
        raise HostlistError(f"too many names in {_shown(term)}")


def _check_prefix(prefix: str, name: str) -> None:
    if not name or _SEPARATORS.search(prefix) or "[" in prefix or "]" in prefix:
        raise HostlistError(f"{_shown(name)} cannot be a name in a hostlist")


def _folded(prefix: str, numbers: list[str]) -> str:
    """One term for all names of a prefix, `gpu-[0-3,07]`; two when the prefix itself is a name."""
    plain = [prefix] if "" in numbers else []
    ranges = list(_ranges([digits for digits in numbers if digits]))
    if len(ranges) == 1 and "-" not in ranges[0]:
        return ",".join([*plain, prefix + ranges[0]])
    return ",".join([*plain, f"{prefix}[{','.join(ranges)}]"] if ranges else plain)


def _ranges(numbers: list[str]) -> Iterator[str]:
    """The fewest ranges for these digits: unpadded ones first, then by width."""
    padded = {len(digits) for digits in numbers if digits[0] == "0" and digits != "0"}
    # 10 goes with 08 and 09 as well as with 8 and 9; it joins the padded ones where there are some.
    widths = sorted((len(digits) if len(digits) in padded else 0, _number(digits)) for digits in numbers)
    for width, group in groupby(widths, key=lambda pair: pair[0]):
        for first, last in _runs([value for _, value in group]):
            text = f"{first:0{width}d}"
            yield text if first == last else f"{text}-{last:0{width}d}"


def _runs(values: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of each unbroken run, none longer than Slurm takes."""
    first = last = values[0]
    for value in values[1:]:
        if value != last + 1 or value - first >= MAX_NAMES:
            yield first, last
            first = value
        last = value
    yield first, last


def _shown(text: str) -> str:
    """Fit for a message, however long the text."""
    return repr(text if len(text) <= 80 else text[:77] + "...")
