"""Jobs in this container, as its own processes show them: the witness that needs no slurmctld."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_STEP = re.compile(r"^slurmstepd: \[(\d+)\.")


def steps_here(proc: Path = Path("/proc")) -> set[str]:
    """Ids of jobs with a step in this container."""
    return {found[1] for line in _command_lines(proc) if (found := _STEP.match(line))}


def _command_lines(proc: Path) -> Iterator[str]:
    for directory in proc.glob("[0-9]*"):
        with suppress(OSError):  # It has just ended.
            yield (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
