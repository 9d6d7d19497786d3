r"""Text of others as people may see it: job names, reasons, logs and answers of servers can say anything.

At a terminal a control character is a command: it moves the cursor, writes over lines above, or sets the
title of the window. Bidirectional overrides show words in another order than they have; zero-width characters
do not show at all. All of these are written out, as `\x1b` or `\u202e`: nothing is hidden, nothing obeyed.
What is plain stays as it is, and what was written out once is plain.
"""

from collections.abc import Callable
from unicodedata import category

# As many accents as a letter has in any language; a pile of them would cover the lines above and below.
MOST_MARKS = 4

# What takes no room, or looks like a space, without being of a category that says so: joiners and fillers of
# letters, selectors of variants, a pattern of Braille without a dot.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)


def printable(text: str) -> str:
    """`text` on one line: whatever is no visible character or a space is written out."""
    return _shown(text, _escaped)


def printable_lines(text: str) -> str:
    """The same for text of several lines: line ends and tabs stay."""
    return "\n".join(
        "\t".join(_shown(part, _escaped) for part in line.split("\t")) for line in text.split("\n")
    )


def printable_json(json: str) -> str:
    """JSON that means the same: there such characters stand in strings only, which can spell them."""
    return "\n".join(_shown(line, _json_escaped) for line in json.split("\n"))


def cut(text: str, most: int) -> str:
    """At most so many characters; an ellipsis stands for what was left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _shown(line: str, escaped: Callable[[str], str]) -> str:
    if line.isascii() and line.isprintable():
        return line
    parts, marks = [], MOST_MARKS  # A mark at the beginning would stand on what is printed before it.
    for char in line:
        kind = category(char)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        is_visible = (char.isprintable() or kind == "Zs") and char not in _BLANK
        parts.append(char if is_visible and marks <= MOST_MARKS else escaped(char))
    return "".join(parts)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


def _json_escaped(char: str) -> str:
    """As JSON has it: beyond the first 65,536 characters with two halves."""
    units = char.encode("utf-16-be", "surrogatepass").hex(" ", 2)
    return "".join(f"\\u{unit}" for unit in units.split())
