"""Secrets that we know, found in a text however they are written there."""

import base64
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from slurm_operator.redaction.names import REDACTED
from slurm_operator.redaction.views import View, views, without_space

Span = tuple[int, int]

SHORTEST_VALUE: Final = 6
# What is as long is no accident where white space was left out.
_SHORTEST_JOINED: Final = 16

_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")
# A branch for each of the first letters: at most places the search ends with the first of them.
_LETTERS_APART: Final = 3


class KnownValues:
    """Finds values plain, escaped, in hexadecimal and base64 digits, also as a part of something longer."""

    def __init__(self, values: Iterable[bytes]) -> None:
        known = {form for value in values for form in (value, value.strip()) if len(form) >= SHORTEST_VALUE}
        plain = {form for value in known for form in _plain_forms(value)}
        coded = {form for value in known for form in _coded_forms(value)}
        joined = {"".join(form.split()) for form in plain}
        self._plain = _pattern(plain)
        self._coded = _pattern(coded)
        self._joined = _pattern({form for form in joined if len(form) >= _SHORTEST_JOINED})

    def spans(self, text: str) -> Iterator[Span]:
        """Where they stand in the text."""
        if self._plain is None:
            return
        for view in views(text):
            yield from _found(self._plain, view)
            close = without_space(view)
            yield from _found(self._joined, close)
            for start, end in _found(self._coded, close):
                yield _widened(text, start, end)


def _found(pattern: re.Pattern[str] | None, view: View) -> Iterator[Span]:
    if pattern is None:
        return
    for found in pattern.finditer(view.text):
        yield view.origin(found.start()), max(view.origin(found.end()), view.origin(found.end() - 1) + 1)


def _widened(text: str, start: int, end: int) -> Span:
    """With the digits at both ends, which have bits of the secret in them and bits of what is beside it."""
    while end > start and text[end - 1].isspace():
        end -= 1
    if start and text[start - 1] in _BASE64:
        start -= 1
    for _ in range(3):
        if end < len(text) and text[end] in _BASE64:
            end += 1
    return start, end


def _plain_forms(value: bytes) -> Iterator[str]:
    form = value.decode("latin-1")
    if form in REDACTED:
        return
    yield form
    yield form.replace(" ", "+")  # In forms and queries.
    if b"\n" in value:
        yield form.replace("\n", "\r\n")


def _coded_forms(value: bytes) -> Iterator[str]:
    for digits in (value.hex(), value.hex(":"), value.hex("-")):
        yield digits
        yield digits.upper()
    for form in _base64_forms(value):
        yield from (form, form.replace("+", "-").replace("/", "_"))
    for form in _base64_forms(base64.b64encode(value)):
        yield form


def _base64_forms(value: bytes) -> Iterator[str]:
    """The digits that do not depend on what stands before and after: three bytes are four digits."""
    for before in range(3):
        digits = base64.b64encode(b"\0" * before + value).decode()
        yield digits[-(-8 * before // 6) : 8 * (before + len(value)) // 6]


def _pattern(forms: set[str]) -> re.Pattern[str] | None:
    return re.compile(_alternatives(sorted(forms), _LETTERS_APART)) if forms else None


def _alternatives(forms: list[str], apart: int) -> str:
    """The longest first: one secret may be a part of another."""
    if len(forms) == 1 or not apart:
        return "|".join(map(re.escape, sorted(forms, key=lambda form: (-len(form), form))))
    branches = [
        f"{re.escape(letter)}(?:{_alternatives([form[1:] for form in group], apart - 1)})"
        for letter, group in groupby(forms, key=lambda form: form[0])
    ]
    return "|".join(branches)
