"""What a person sees while they wait: bars on a terminal, plain lines elsewhere, nothing in tests."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from slurm_operator.printable import printable, printable_lines


class Step(Protocol):
    """One thing being done."""

    def say(self, text: str) -> None:
        """What it is busy with right now; the next text replaces this one."""

    def at(self, done: int, total: int) -> None:
        """How far it is."""


class Progress(Protocol):
    """A way to show steps. Steps may be nested and may run in several threads."""

    def step(self, title: str, why: str = "") -> AbstractContextManager[Step]:
        """Show `title` until the block ends; `why` says why it takes long."""

    def note(self, text: str) -> None:
        """A line that stays."""


def progress_for(stream: TextIO) -> Progress:
    return RichProgress(Console(file=stream)) if stream.isatty() else PlainProgress(stream)


class Quiet:
    """Shows nothing."""

    @contextmanager
    def step(self, title: str, why: str = "") -> Iterator[Step]:
        yield _QuietStep()

    def note(self, text: str) -> None:
        pass


class _QuietStep:
    def say(self, text: str) -> None:
        pass

    def at(self, done: int, total: int) -> None:
        pass


class PlainProgress:
    """One line when a step begins, one when it ends, and one per tenth of a long one."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream

    @contextmanager
    def step(self, title: str, why: str = "") -> Iterator[Step]:
        began = time.monotonic()
        self.note(f"{title} ... ({why})" if why else f"{title} ...")
        try:
            yield _PlainStep(title, self)
        except BaseException:
            self.note(f"{title}: failed after {time.monotonic() - began:.1f} s")
            raise
        self.note(f"{title}: done in {time.monotonic() - began:.1f} s")

    def note(self, text: str) -> None:
        print(printable_lines(text), file=self._stream, flush=True)


class _PlainStep:
    def __init__(self, title: str, progress: PlainProgress) -> None:
        self._title, self._progress, self._tenth = title, progress, 0

    def say(self, text: str) -> None:
        pass  # Hundreds of package names would bury the lines that matter.

    def at(self, done: int, total: int) -> None:
        tenth = 10 * done // max(total, 1)
        if self._tenth < tenth < 10:
            self._tenth = tenth
            self._progress.note(f"{self._title}: {10 * tenth} %")


class RichProgress:
    """A live bar per running step; a finished step leaves one line with its time."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[saying]}"),
            console=self._console,
            transient=True,
        )
        self._running = 0
        self._lock = threading.Lock()

    @contextmanager
    def step(self, title: str, why: str = "") -> Iterator[Step]:
        began = time.monotonic()
        task = self._begin(title, why)
        try:
            yield _RichStep(self._bars, task)
        except BaseException:
            self._end(task, f"[red]✗[/red] {escape(title)}")
            raise
        self._end(task, f"[green]✓[/green] {escape(title)} [dim]{time.monotonic() - began:.1f} s[/dim]")

    def note(self, text: str) -> None:
        self._console.print(escape(printable_lines(text)), highlight=False)

    def _begin(self, title: str, why: str) -> TaskID:
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._bars.start()
            return self._bars.add_task(escape(title), total=None, saying=escape(why))

    def _end(self, task: TaskID, line: str) -> None:
        with self._lock:
            self._bars.remove_task(task)
            self._console.print(line, highlight=False)
            self._running -= 1
            if self._running == 0:
                self._bars.stop()


class _RichStep:
    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def say(self, text: str) -> None:
        self._bars.update(self._task, saying=escape(printable(text[-60:])))

    def at(self, done: int, total: int) -> None:
        self._bars.update(self._task, completed=done, total=total)
