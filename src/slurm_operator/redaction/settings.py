"""Secrets by place: what stands under a name that speaks of one, to the end of the line.

What a value looks like says nothing about where it ends: passwords have spaces, commas, quotes and number
signs in them. Only where the name itself is in quotes, as in JSON, the value ends with its own.
"""

import re
from collections.abc import Iterator
from typing import Final

from slurm_operator.redaction.names import (
    HANDLE,
    is_nothing,
    is_of_password,
    may_speak_of_secret,
    path_length,
    speaks_of_secret,
)

Span = tuple[int, int]

_NAME: Final = re.compile(r"[\w.\-/]+")
_SEPARATOR: Final = re.compile(r"""(?P<quote>\\*["'])?[ \t\])]*(?P<sign>:=|=>|\+=|==?|:|>)[ \t]*""")
_OPENING: Final = re.compile(r"""(?P<escapes>\\*)(?P<quote>["'`])""")
_AFTER_VALUE: Final = re.compile(r"""[ \t]*(?:$|[,}\])]|\\*["'])""")
_REST: Final = re.compile(r"[ \t\r,;)}\]]*$")
_ATOM: Final = re.compile(r"(?:-?\d[\d.eE+\-]*|true|false|null)(?=[ \t]*[,}\]])")
_WORD: Final = re.compile(r"""[^\s,;"'\\)}\]]{0,4096}""")
_BLOCK: Final = re.compile(r"[|>][+\-0-9]{0,3}[ \t]*(?:#.*)?$")
_LINE_START: Final = re.compile(r"""[\s>#]*(?:- *)*(?:export |set |env )?\\*["'<]?$""")
_INDENT: Final = re.compile(r"[ \t]*")
_ITEM: Final = re.compile(r"""[ \t]*(?:- *)?["']?""")
_AFTER_FLAG: Final = re.compile(r"""["',\]]*[ \t]+["']?""")
_FLAG_ENDS: Final = re.compile(r"""["',\s]*$""")
_VARIABLE: Final = re.compile(r"[A-Za-z_][\w.\-]{0,200}$")
# How Slurm's daemons begin a line about a plugin: `rest_auth/jwt: attempting token authentication`.
_PLUGIN: Final = re.compile(r"[a-z_]+/[a-z_]+$")

# Which letter takes the password on the command lines of these.
_COMMANDS: Final = re.compile(
    r"(?<![\w.])(?:(?P<p>mysql[a-z]{0,12}|mariadb(?:-[a-z]{1,12})?|sshpass|mongo[a-z]{0,8}"
    r"|(?:docker|podman|helm registry) login)"
    r"|(?P<u>curl|wget)|(?P<w>ldap[a-z]{2,10})|(?P<a>redis-cli)|(?P<U>smbclient|rpcclient))(?![\w.])"
)
_LETTERS: Final = {
    name: re.compile(rf"""(?<=[\s"'\[,])-{name}(?:["',=\s]*)(?=[^\s"',=])""") for name in "puwaU"
}
_PAIR_NAMES: Final = frozenset({"name", "key", "Name", "Key", "variable"})
_PAIR_VALUES: Final = frozenset({"value", "Value"})

_FURTHEST_QUOTE: Final = 4096


class _Lines:
    """A text with the places where its lines begin and end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.ends = [start - 1 for start in self.starts[1:]] + [len(text)]

    def indent(self, number: int) -> int:
        found = _INDENT.match(self.text, self.starts[number], self.ends[number])
        return found.end() - self.starts[number] if found else 0

    def is_blank(self, number: int) -> bool:
        return self.text[self.starts[number] : self.ends[number]].isspace() or (
            self.starts[number] == self.ends[number]
        )


class _Scan:
    """One pass over a text. Every step begins where the one before ended."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = _Lines(text)
        self._armed = 0  # For so many settings to come a `value` belongs to the name of a secret.
        self._last_value: tuple[int, int] | None = None  # Line and begin of the last setting, a `value`.

    def spans(self) -> Iterator[Span]:
        number, skip_to = 0, 0
        while number < len(self._lines.starts):
            start, end = max(self._lines.starts[number], skip_to), self._lines.ends[number]
            for span in self._line(number, start, end):
                yield span
                skip_to = max(skip_to, span[1])
            number += 1
            while number < len(self._lines.starts) and self._lines.ends[number] < skip_to:
                number += 1

    def _line(self, number: int, start: int, end: int) -> Iterator[Span]:
        position = start
        while position < end and (name := _NAME.search(self._text, position, end)) is not None:
            separator = _SEPARATOR.match(self._text, name.end(), end)
            if separator is None:
                span = self._flag(number, name, end)
                position = name.end()
            else:
                position = separator.end()
                span = self._setting(number, name, separator, end)
            if span is not None:
                yield span
                position = max(position, span[1])
            elif separator is not None and may_speak_of_secret(name[0]):
                position += path_length(self._text[position : min(end, position + 4096)])
        yield from self._option(start, end)

    def _setting(self, number: int, name: re.Match[str], separator: re.Match[str], end: int) -> Span | None:
        word, begin = name[0].lstrip("-"), separator.end()
        sign, is_quoted = separator["sign"], separator["quote"] is not None
        before, self._last_value = self._last_value, None
        if (sign == ":" and self._text.startswith("//", begin)) or (
            sign == ">" and self._text[name.start() - 1 : name.start()] != "<"
        ):
            return None
        if word in _PAIR_NAMES:
            return self._pair_name(begin, end, before)
        if word in _PAIR_VALUES:
            self._last_value = (number, begin)
            return self._value(number, name, begin, end, is_quoted=is_quoted) if self._disarm() else None
        self._armed = max(0, self._armed - 1)
        if _PLUGIN.match(word) and sign == ":" and not is_of_password(word):
            return None
        if not may_speak_of_secret(word) or not self._is_secret(word, begin, end):
            return None
        return self._value(number, name, begin, end, is_quoted=is_quoted)

    def _is_secret(self, word: str, begin: int, end: int) -> bool:
        """By its first word: under a doubtful name a path is none, nor what is too short for a key."""
        opening = _OPENING.match(self._text, begin, end)
        if opening is not None:
            close = self._close(opening, min(end, opening.end() + _FURTHEST_QUOTE))
            value = self._text[opening.end() : close[0] if close is not None else end]
        else:
            found = _WORD.match(self._text, begin, end)
            value = found[0] if found is not None else ""
        is_elsewhere = value in ("", "|", ">", "|-", ">-", "[", "{")
        return is_elsewhere or is_of_password(word.rpartition("/")[2]) or speaks_of_secret(word, value)

    def _pair_name(self, begin: int, end: int, before: tuple[int, int] | None) -> Span | None:
        opening = _OPENING.match(self._text, begin, end)
        word = _WORD.match(self._text, opening.end() if opening else begin, end)
        self._armed = 0
        if word is None or not _VARIABLE.match(word[0]) or not may_speak_of_secret(word[0]):
            return None
        self._armed = 2
        if before is None:
            return None
        number, start = before
        span = self._to_end(start, min(self._lines.ends[number], begin))
        self._armed = 0
        return span

    def _disarm(self) -> bool:
        armed, self._armed = self._armed, 0
        return armed > 0

    def _value(
        self, number: int, name: re.Match[str], begin: int, end: int, *, is_quoted: bool
    ) -> Span | None:
        """Where the value is; None where there is nothing to hide."""
        text = self._text
        opening = _OPENING.match(text, begin, end)
        close = self._close(opening, end) if opening is not None else None
        if opening is not None and close is not None:
            is_json = is_quoted and _AFTER_VALUE.match(text, close[1], end) is not None
            if is_json or _REST.match(text, close[1], end):
                return self._to_end(opening.end(), close[0])
        if is_quoted and (atom := _ATOM.match(text, begin, end)) is not None:
            return self._to_end(begin, atom.end())
        last = end
        if _LINE_START.match(text[max(self._lines.starts[number], name.start() - 200) : name.start()]):
            last = self._continued(number, name.start() - self._lines.starts[number], begin, end)
            if opening is not None and close is None:
                found = text.find(opening["quote"], last, last + _FURTHEST_QUOTE)
                last = found if found >= 0 else last
        return self._to_end(begin, last)

    def _close(self, opening: re.Match[str], end: int) -> Span | None:
        """The quote that ends a value. In JSON in JSON it has as many backslashes as the first one."""
        depth, quote = len(opening["escapes"]), opening["quote"]
        position = opening.end()
        while (found := self._text.find(quote, position, end)) >= 0:
            escapes = found
            while escapes > opening.end() and self._text[escapes - 1] == "\\":
                escapes -= 1
            doubled = not depth and found > opening.end() and self._text.startswith(quote, found + 1)
            if (found - escapes) % (2 * depth + 2) == depth and not doubled:
                return found - depth, found + 1
            position = found + 2 if doubled else found + 1
        return None

    def _continued(self, number: int, column: int, begin: int, end: int) -> int:
        """The end of what is indented further than the name, as YAML and ini files continue a value."""
        value = self._text[begin:end]
        is_open = not value.strip() or _BLOCK.match(value) is not None
        last, number = end, number + 1
        while number < len(self._lines.starts):
            if not self._lines.is_blank(number):
                indent = self._lines.indent(number)
                is_item = is_open and indent == column and self._text.startswith(
                    "- ", self._lines.starts[number] + indent
                )  # fmt: skip
                if indent <= column and not is_item and not self._text.endswith("\\", begin, last):
                    break
                last = self._lines.ends[number]
            number += 1
        return last

    def _flag(self, number: int, name: re.Match[str], end: int) -> Span | None:
        """`--password X`, in one line or as two items of a list."""
        word = name[0].lstrip("-")
        if not name[0].startswith("-") or not may_speak_of_secret(word):
            return None
        text = self._text
        if _FLAG_ENDS.match(text, name.end(), end) and number + 1 < len(self._lines.starts):
            start, end = self._lines.starts[number + 1], self._lines.ends[number + 1]
            item = _ITEM.match(text, start, end)
            begin = item.end() if item else start
        else:
            gap = _AFTER_FLAG.match(text, name.end(), end)
            if gap is None:
                return None
            begin = gap.end()
        if text.startswith("--", begin) or not speaks_of_secret(word, text[begin:end]):
            return None
        return self._to_end(begin, end)

    def _option(self, start: int, end: int) -> Iterator[Span]:
        """`mysql -pX`."""
        command = _COMMANDS.search(self._text, start, end)
        if command is None or command.lastgroup is None:
            return
        found = _LETTERS[command.lastgroup].search(self._text, command.end(), end)
        if found is not None:
            span = self._to_end(found.end(), end)
            if span is not None:
                yield span

    def _to_end(self, begin: int, end: int) -> Span | None:
        if self._text.startswith(HANDLE, begin):
            return None
        while end > begin and self._text[end - 1] in " \t\r\n":
            end -= 1
        return None if is_nothing(self._text[begin:end]) else (begin, end)


def password_option(program: str) -> str:
    """The option that takes the password on the command line of this program; empty where there is none."""
    found = _COMMANDS.fullmatch(program.rpartition("/")[2])
    return f"-{found.lastgroup}" if found is not None else ""


def named_spans(text: str) -> Iterator[Span]:
    """Where secrets stand under their names."""
    return _Scan(text).spans()
