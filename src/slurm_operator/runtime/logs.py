"""Log lines: JSON for machines, plain for people, the same fields in both. Secrets never get here."""

import logging
import sys
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from slurm_operator import wire

Style = Literal["json", "plain"]

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(style: Style = "json", level: str = "info", stream: TextIO = sys.stderr) -> None:
    """Set up logging for this process: ours, and what libraries log at warning or worse."""
    renderer: Processor = (
        _json if style == "json" else structlog.dev.ConsoleRenderer(colors=stream.isatty(), sort_keys=False)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_Passed()], level=logging.WARNING, force=True)


def _json(_logger: WrappedLogger, _name: str, event: EventDict) -> str:
    """`time` and `level` first, then the sentence, then the facts."""
    first = {
        "time": event.pop("time", ""),
        "level": event.pop("level", ""),
        "message": event.pop("event", ""),
    }
    return wire.encode(first | {key: _simple(value) for key, value in event.items()}).decode()


def _simple(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class _Passed(logging.Handler):
    """Lines of libraries that use the standard logger, passed on in our format."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger(record.name)
        level = "error" if record.levelno >= logging.ERROR else "warning"
        getattr(log, level)(record.getMessage(), library=record.name, exc_info=record.exc_info)
