"""Log lines: JSON for machines, plain for people, the same fields in both. Secrets never get here.

What others wrote is quoted in them, and cannot pass for a line of ours: control characters are written out.
"""

import logging
import sys
from textwrap import indent
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from slurm_operator import wire
from slurm_operator.printable import cut, printable, printable_json, printable_lines

Style = Literal["json", "plain"]

# Of one value. Container runtimes break lines that are longer than 16 KiB.
_MOST_CHARACTERS = 8192

# Where structlog puts a trace: the one value of many lines, and never cut.
_TRACE = "exception"

# Values with one of these are quoted, so that the next one cannot be mistaken.
_QUOTED = frozenset(" \t=\r\n\"'")

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(style: Style = "json", level: str = "info", stream: TextIO = sys.stderr) -> None:
    """Set up logging for this process: ours, and what libraries log at warning or worse."""
    renderers: tuple[Processor, ...] = (_json,) if style == "json" else (_visible, _console(stream))
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_Passed()], level=logging.WARNING, force=True)


def _console(stream: TextIO) -> Processor:
    return structlog.dev.ConsoleRenderer(colors=stream.isatty(), sort_keys=False)


def _json(_logger: WrappedLogger, _name: str, event: EventDict) -> str:
    """`time` and `level` first, then the sentence, then the facts."""
    first: EventDict = {
        "time": event.pop("time", ""),
        "level": event.pop("level", ""),
        "message": event.pop("event", ""),
    }
    fields = {key: _simple(value) for key, value in {**first, **event}.items() if key != _TRACE}
    if _TRACE in event:
        fields[_TRACE] = _encodable(str(event[_TRACE]))
    return printable_json(wire.encode(fields).decode())


def _simple(value: object) -> object:
    is_simple = isinstance(value, int | float | bool | None)
    return value if is_simple else _encodable(cut(str(value), _MOST_CHARACTERS))


def _encodable(text: str) -> str:
    """Without half characters, as file names can have them: they have no form in UTF-8."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


class _Shown:
    """A value as it is to be printed, quotes and all."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _visible(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """One line for a plain log. Only traces go on below it, behind a margin that no line of ours has."""
    shown = {key: value if key == "level" else _Shown(_one_line(value)) for key, value in event.items()}
    shown["event"] = cut(printable(str(event.get("event", ""))), _MOST_CHARACTERS)
    if _TRACE in event:
        shown[_TRACE] = indent(printable_lines(str(event[_TRACE])), "  ", lambda _: True)
    return shown


def _one_line(value: object) -> str:
    is_bare = isinstance(value, str) and _QUOTED.isdisjoint(value)
    return cut(printable(str(value) if is_bare else repr(value)), _MOST_CHARACTERS)


class _Passed(logging.Handler):
    """Lines of libraries that use the standard logger, passed on in our format."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger(record.name)
        level = "error" if record.levelno >= logging.ERROR else "warning"
        getattr(log, level)(record.getMessage(), library=record.name, exc_info=record.exc_info)
