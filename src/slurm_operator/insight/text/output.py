"""What commands print: tables as kubectl has them, JSON for programs, colours for people at a terminal.

Nothing is printed past this module. Every text passes `_cell` on its way, which writes out what a terminal
would obey: the line ends and colours that remain are ours.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import yaml
from rich.console import Console
from rich.text import Text

from slurm_operator import wire
from slurm_operator.printable import cut, printable, printable_json, printable_lines
from slurm_operator.slurm.states import NodeFlag, NodeState

GOOD, BUSY, BAD, DIM, HEAD = "green", "yellow", "red", "dim", "bold"

_GAP = "   "
_INDENT = "  "

# Whoever gives a job a name of a megabyte spoils no table with it; JSON has all of it.
_LONGEST_CELL = 4096


class Cell(NamedTuple):
    """A text, and what it should look like at a terminal."""

    text: str
    style: str = ""


Row = Sequence[str | Cell]


def console(environ: Mapping[str, str] = os.environ) -> Console:
    """Standard output. Colours and widths only at a terminal; NO_COLOR and TERM=dumb are obeyed."""
    plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True, no_color=plain)


def emit(output: str, value: object, text: Callable[[], Text], to: Console | None = None) -> None:
    """Print `value` as JSON or YAML, or the text made of it."""
    to = to or console()
    if output == "json":
        to.print(Text(printable_json(wire.pretty(value))))
    elif output == "yaml":
        to.print(Text(as_yaml(value)), end="")
    else:
        to.print(text(), end="")


def stream(value: object, to: Console, output: str = "json") -> None:
    """Print `value` as one line of JSON, or as one document of YAML."""
    if output == "yaml":
        to.print(Text(f"---\n{as_yaml(value)}"), end="")
    else:
        to.print(Text(printable_json(wire.encode(value).decode())))


def as_yaml(value: object) -> str:
    """What JSON would say, as YAML. It spells every letter that is not ASCII, so no terminal obeys one."""
    return str(yaml.safe_dump(wire.decode_any(wire.encode(value)), sort_keys=False, width=110))


def log_line(origin: Cell, line: str, to: Console, *, raw: bool = False) -> None:
    """Print a line of a log behind its origin, whole and with its tabs; `raw` as it was written."""
    to.print(Text(printable(origin.text), style=origin.style), end=" ")
    if raw:
        to.file.write(f"{line}\n")
    else:
        to.print(Text(printable_lines(line.removesuffix("\r"))))


def table(head: Sequence[str], rows: Iterable[Row], *, indent: bool = False) -> Text:
    """Columns as wide as what is in them; the last one is not filled up."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    lines = [[Cell(name, DIM) for name in head], *cells]
    widths = [max(len(line[column].text) for line in lines) for column in range(len(head))]
    return joined(_line(line, widths, indent=indent) for line in lines)


def paragraph(*cells: str | Cell, indent: bool = False, apart: bool = False) -> Text:
    """One line; `apart` with an empty one before it."""
    line = Text(("\n" if apart else "") + (_INDENT if indent else ""))
    for cell in map(_cell, cells):
        line.append(cell.text, style=cell.style)
    return line.append("\n")


def title(text: str, *, apart: bool = False) -> Text:
    return paragraph(Cell(text, HEAD), apart=apart)


def joined(parts: Iterable[Text]) -> Text:
    return Text().join(parts)


def span(length: timedelta) -> str:
    """A length of time as kubectl writes ages: 45s, 12m, 3h, 2d4h."""
    seconds = max(0, int(length.total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 120:
        return f"{minutes}m"
    days, hours = divmod(minutes // 60, 24)
    if days == 0:
        return f"{hours}h"
    return f"{days}d{hours}h" if days < 8 and hours else f"{days}d"


def ago(since: datetime | None, now: datetime) -> str:
    """How long ago; nothing when nobody knows."""
    return span(now - since) if since is not None else ""


def node_state(state: NodeState) -> str:
    """A node's state without what is true of all nodes here: they added themselves."""
    return str(NodeState(state.words - {NodeFlag.DYNAMIC_NORM, NodeFlag.DYNAMIC_FUTURE}))


def counted(number: int, noun: str) -> str:
    """1 job, 2 jobs."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _line(cells: Sequence[Cell], widths: Sequence[int], *, indent: bool) -> Text:
    line = Text(_INDENT if indent else "")
    for cell, width in zip(cells, widths, strict=True):
        line.append(cell.text, style=cell.style)
        line.append(" " * (width - len(cell.text)) + _GAP)
    line.rstrip()
    return line.append("\n")


def _cell(cell: str | Cell) -> Cell:
    given = cell if isinstance(cell, Cell) else Cell(cell)
    return given._replace(text=cut(printable(given.text), _LONGEST_CELL))
