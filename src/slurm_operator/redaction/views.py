"""A text as others would read it: escapes undone, white space left out, and where in the text each letter is.

A view has one character for each byte, so that a secret is found whether it is text or not.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final, Self

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_SPACE: Final = re.compile(r"\s+")
_PERCENT: Final = re.compile(r"%[0-9a-fA-F]{2}")
_ENTITY: Final = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);")
_BACKSLASH: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"
    r"|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[^\n])"
)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_ENTITIES: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

# JSON in JSON in JSON is the most that anybody writes.
_DEPTH: Final = 3
# So many different ways to read one text are enough.
_MOST_VIEWS: Final = 24


class View:
    """A text made from another one."""

    def __init__(self, text: str, breaks: tuple[list[int], list[int]], parent: Self | None) -> None:
        self.text = text
        self._at, self._from = breaks
        self._parent = parent

    def origin(self, position: int) -> int:
        """Where in the first text this position is."""
        found = bisect_right(self._at, position) - 1
        before = self._from[found] + position - self._at[found]
        return before if self._parent is None else self._parent.origin(before)


def of_bytes(text: str) -> View:
    """One character for each byte of the text."""
    return _changed(text, _NOT_ASCII, lambda found: _bytes(found[0]), None)


def views(text: str) -> Iterator[View]:
    """The text, and what it becomes when escapes of one kind after the other are undone."""
    first = of_bytes(text)
    known, newest = {first.text}, [first]
    yield first
    for _ in range(_DEPTH):
        found: list[View] = []
        for view in newest:
            for mark, pattern, undo in _DECODERS:
                if mark not in view.text or len(known) >= _MOST_VIEWS:
                    continue
                decoded = _changed(view.text, pattern, undo, view)
                if decoded.text not in known:
                    known.add(decoded.text)
                    found.append(decoded)
                    yield decoded
        newest = found


def without_space(view: View) -> View:
    return _changed(view.text, _SPACE, lambda _: "", view)


def _changed(
    text: str, pattern: re.Pattern[str], undo: Callable[[re.Match[str]], str], parent: View | None
) -> View:
    parts: list[str] = []
    at, origins, length, end = [0], [0], 0, 0
    for found in pattern.finditer(text):
        plain = undo(found)
        parts += (text[end : found.start()], plain)
        length += found.start() - end
        for _ in plain:  # Every byte of one escape stands where the escape begins.
            at.append(length)
            origins.append(found.start())
            length += 1
        at.append(length)
        origins.append(end := found.end())
    return View("".join([*parts, text[end:]]), (at, origins), parent)


def _bytes(text: str) -> str:
    return text.encode(errors="surrogatepass").decode("latin-1")


def _character(number: int) -> str:
    return _bytes(chr(number)) if number < 0x110000 else ""


def _percent(found: re.Match[str]) -> str:
    return chr(int(found[0][1:], 16))


def _entity(found: re.Match[str]) -> str:
    name = found[0][1:-1]
    if not name.startswith("#"):
        return _ENTITIES[name]
    return _character(int(f"0{name[1:]}", 16) if name[1] in "xX" else int(name[1:]))


def _backslash(found: re.Match[str], *, is_text: bool = True) -> str:
    """In Python's texts \\xe9 is a letter, in its bytes and in shells it is a byte."""
    code = found[0][1:]
    match code[0]:
        case "u" if len(code) > 5:
            high, low = int(code[1:5], 16), int(code[7:], 16)
            return _character(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        case "u" | "U" if len(code) > 1:
            return _character(int(code[1:], 16))
        case "x" if len(code) > 1:
            return _character(int(code[1:], 16)) if is_text else chr(int(code[1:], 16))
        case _ if len(code) == 3:
            return chr(int(code, 8))
        case letter:
            return _LETTERS.get(letter, letter)


_DECODERS: Final[tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    ("\\", _BACKSLASH, _backslash),
    ("%", _PERCENT, _percent),
    ("\\x", _BACKSLASH, lambda found: _backslash(found, is_text=False)),
    ("&", _ENTITY, _entity),
)
