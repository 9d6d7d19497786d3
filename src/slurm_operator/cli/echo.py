"""Lines of commands that have no screen: what others wrote is shown, never obeyed by a terminal."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import click

from slurm_operator.printable import printable_lines


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    click.echo(printable_lines(text), nl=nl, err=err)


@contextmanager
def errors_shown() -> Iterator[None]:
    """What a command fails with often quotes a server, which can say anything."""
    try:
        yield
    except click.ClickException as error:
        error.message = printable_lines(error.message)  # type: ignore[misc]  # Every kind of error shows it.
        raise


def show_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Python's own last words, for `sys.excepthook`."""
    sys.stderr.write(printable_lines("".join(traceback.format_exception(kind, error, trace))))
