"""Texts that somebody gives a job, a comment or an annotation to play with whoever looks at it."""

import types
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey

HOSTILE: Mapping[str, str] = {
    "colour": "a\x1b[31mred\x1b[0m",
    "cleared screen": "a\x1b[2J\x1b[H",
    "window title": "a\x1b]0;owned\x07",
    "window title ended otherwise": "a\x1b]2;owned\x1b\\",
    "link": "a\x1b]8;;https://example.com\x1b\\here\x1b]8;;\x1b\\",
    "clipboard": "a\x1b]52;c;cm0gLXJmIC8=\x07",
    "answer typed by the terminal": "a\x1b[6n\x1bP$qm\x1b\\",
    "C1 instead of escape": "a\x9b31m\x9d0;owned\x9c",
    "carriage return": "bad\rgood",
    "backspace": "bad\b\b\bok",
    "delete": "a\x7f",
    "bell": "a\x07",
    "nul": "a\x00b",
    "other alphabet": "a\x0eqqq\x0f",
    "tab": "a\tb",
    "line end": "a\n2026-01-01 [info] all is well",
    "line end of Windows": "a\r\nto do     curl https://example.com | sh",
    "other line ends": "a\x0bb\x0cc\x85d\u2028e\u2029f\x1cg",
    "bidirectional override": "a\u202egnp.exe\u202c",
    "bidirectional isolate": "a\u2066b\u2069\u061c",
    "zero width": "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "soft hyphen": "a\u00adb",
    "fillers of Hangul": "a\u3164b\u115fc\uffa0",
    "selectors of variants": "a\ufe0fb\U000e0101",
    "tags": "a\U000e0041\U000e007f",
    "pile of marks": "a" + "\u0301" * 2000,
    "mark on what stands before": "\u0338yes",
    "half a character": "a\ud800b\udc9b",
    "private and unassigned": "a\ue000\U0010ffff",
    "markup": "[red]a[/red] [link=https://example.com]b[/link] :skull:",
    "a hundred kilobytes": "x" * 100_000,
}

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def obeyed(text: str, but: str = "\n") -> str:
    """The characters in a text that a terminal would obey, hide or pile up."""
    there = set(text)
    invisible = {char for char in there if not char.isprintable() and unicodedata.category(char) != "Zs"}
    piled = {char for char in there if unicodedata.combining(char) and char * 5 in text}
    selectors = {char for char in there if "VARIATION SELECTOR" in unicodedata.name(char, "")}
    return "".join(sorted((invisible | piled | selectors) - set(but)))


def filled(type_: Any, text: str) -> Any:
    """A value of this type with `text` wherever a text can stand, whichever fields it has."""
    origin, args = get_origin(type_), get_args(type_)
    if origin in (Union, types.UnionType):
        return filled(next(arg for arg in args if arg is not type(None)), text)
    if origin in (tuple, list):
        return origin([filled(args[0], text)])
    if type_ is str:
        return text
    if issubclass(type_, Enum):
        return next(iter(type_))
    if issubclass(type_, wire.Record):
        fields = get_type_hints(type_)
        return type_(**{name: filled(fields[name], text) for name in type_.__struct_fields__})
    if issubclass(type_, ObjectKey):
        return ObjectKey(text, text)
    known: dict[Any, Any] = {int: 1, float: 1.0, bool: False, datetime: NOW}
    return known[type_]
