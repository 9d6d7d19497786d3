"""The lines of a Slurm configuration file, read and written.

The rules are those of Slurm's own parser, tried on 26.05: `#` begins a comment even within quotes, a
backslash before it keeps it, an odd number of backslashes at the end of a line joins the next one to it, a
value with white space stands in quotes, and there is no way to write a quote into such a value.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from slurm_operator.slurm.conf.problems import Fault, LineProblem

WHITE = " \t\n\r\v\f"
_BEFORE_COMMENT = re.compile(r"((?:[^\\#]|\\.)*)#", re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_INCLUDE = re.compile(r"include\s+(\S+)\s*", re.IGNORECASE | re.ASCII)
_KEY = re.compile(r"[A-Za-z0-9_.]+", re.ASCII)
_PAIR = re.compile(
    r"\s*(?P<key>[A-Za-z0-9_.]+)\s*(?P<operator>[-*+/]?)=\s*"
    r'(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))(?=\s|\Z)',
    re.ASCII,
)
_UNWRITABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_WHITE = re.compile(r"\s", re.ASCII)


class UnwritableError(ValueError):
    """A value that no line of a Slurm configuration file can hold."""


@dataclass(frozen=True, slots=True)
class Pair:
    """`Key=value`. The operator of `Key+=value` is kept, though Slurm uses it in few places."""

    key: str
    value: str
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of pairs. The first is what the line is about, the others describe it: `NodeName=a CPUs=2`."""

    pairs: tuple[Pair, ...]
    line: int = 0
    file: str = ""

    @property
    def key(self) -> str:
        return self.pairs[0].key

    @property
    def value(self) -> str:
        return self.pairs[0].value

    def option(self, key: str) -> str | None:
        """The value of a further pair, whatever the case of its key; the last one counts."""
        found = [pair.value for pair in self.pairs[1:] if pair.key.lower() == key.lower()]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Include:
    """`Include path`: that file's lines stand here."""

    path: str
    line: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """A line that is nothing but a comment; without a text, an empty line."""

    text: str = ""
    line: int = 0
    file: str = ""


Entry = Setting | Include | Comment


@dataclass(frozen=True, slots=True)
class Conf:
    """The lines of one file that could be read, and what could not."""

    entries: tuple[Entry, ...]
    problems: tuple[LineProblem, ...] = ()

    @property
    def settings(self) -> tuple[Setting, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, Setting))

    def all(self, key: str) -> tuple[Setting, ...]:
        """Every line about this key, whatever its case."""
        return tuple(setting for setting in self.settings if setting.key.lower() == key.lower())

    def last(self, key: str) -> str | None:
        """The value in force: where a key is repeated, Slurm uses the last."""
        found = self.all(key)
        return found[-1].value if found else None


def setting(key: str, value: str, **options: str) -> Setting:
    """A line to be written: setting("NodeSet", "gpu", Feature="gpu")."""
    return Setting((Pair(key, value), *(Pair(name, option) for name, option in options.items())))


# A pass over a Controller asks for the same few files some thirty times, and most passes change none of them.
@lru_cache(maxsize=128)
def parse(text: str, file: str) -> Conf:
    """Every entry of a file; lines that cannot be read become problems, and the rest goes on."""
    entries: list[Entry] = []
    problems: list[LineProblem] = []
    for number, line in _logical_lines(text):
        match _entry(line, number, file):
            case LineProblem() as problem:
                problems.append(problem)
            case Setting() as entry:
                entries.append(entry)
                problems.extend(_quote_trouble(entry))
            case entry:
                entries.append(entry)
    return Conf(tuple(entries), tuple(problems))


def render(entries: Iterable[Entry]) -> str:
    """The file, one entry a line. `parse` gives the same entries back. Raises UnwritableError."""
    return "".join(f"{_entry_text(entry)}\n" for entry in entries)


def pair_text(pair: Pair) -> str:
    """`Key=value` as a file needs it, quoted and escaped. Raises UnwritableError."""
    if not _KEY.fullmatch(pair.key):
        raise UnwritableError(f"{pair.key!r} cannot be a key")
    return f"{pair.key}{pair.operator}={_value_text(pair)}"


def _value_text(pair: Pair) -> str:
    value = pair.value
    if _UNWRITABLE.search(value):
        raise UnwritableError(f"the value of {pair.key} has line breaks or control characters")
    looks_quoted = len(value) > 1 and value[0] == value[-1] == '"' and value.count('"') == 2
    if value and not _WHITE.search(value) and not looks_quoted:
        return _escaped(value)
    if '"' in value:
        raise UnwritableError(
            f"the value of {pair.key} has quotes where they cannot be kept: {_shown(value)}"
        )
    return f'"{_escaped(value)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("#", "\\#")


def _entry_text(entry: Entry) -> str:
    match entry:
        case Setting(pairs):
            return " ".join(pair_text(pair) for pair in pairs)
        case Include(path):
            if not path or _WHITE.search(path) or _UNWRITABLE.search(path):
                raise UnwritableError(f"{path!r} cannot be included: the name is empty or has white space")
            return f"Include {_escaped(path)}"
        case Comment(text):
            if _UNWRITABLE.search(text):
                raise UnwritableError("a comment has line breaks or control characters")
            return f"# {text}" if text else ""


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined at their backslashes and freed of escapes, each with the number of its first.

    Comments behind something are cut off; a line that is all comment stays, so that it can be kept.
    """
    start, joined = 0, ""
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, 1):
        start = start or number
        if not joined and line.lstrip(WHITE).startswith("#"):
            yield start, line
        elif continued := _continued(_without_comment(line)):
            joined += continued[0]
            continue
        else:
            yield start, _ESCAPED.sub(r"\1", joined + _without_comment(line))
        start, joined = 0, ""
    if joined:
        yield start, _ESCAPED.sub(r"\1", joined)


def _without_comment(line: str) -> str:
    before = _BEFORE_COMMENT.match(line)
    return before[1] if before else line


def _continued(line: str) -> tuple[str] | None:
    """What the next line is joined to; None when the line ends here."""
    stripped = line.rstrip(WHITE)
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return (stripped[:-1],) if backslashes % 2 else None


def _entry(line: str, number: int, file: str) -> Entry | LineProblem:
    stripped = line.strip(WHITE)
    if not stripped or stripped.startswith("#"):
        return Comment(stripped.removeprefix("#").strip(WHITE), number, file)
    if included := _INCLUDE.fullmatch(line):
        return Include(included[1], number, file)
    pairs = []
    at = 0
    while matched := _PAIR.match(line, at):
        quoted, bare = matched["quoted"], matched["bare"]
        pairs.append(Pair(matched["key"], bare if quoted is None else quoted, matched["operator"]))
        at = matched.end()
    rest = line[at:].strip(WHITE)
    if rest:
        return LineProblem(file, number, f'cannot read {_shown(rest)}; write Key=value, or Key="two words"')
    return Setting(tuple(pairs), number, file)


def _quote_trouble(setting: Setting) -> Iterator[LineProblem]:
    """Slurm takes a quote that is never closed as part of the value."""
    for pair in setting.pairs:
        if pair.value.startswith('"') and pair.value.count('"') == 1:
            reason = f"a quote at {pair.key} is not closed; a # ends the line even within quotes"
            yield LineProblem(setting.file, setting.line, reason, Fault.IGNORED)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
