"""Jobs in this container, as its own processes show them: the witness that needs no slurmctld."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_STEP = re.compile(r"^slurmstepd: \[(\d+)\.")
_PARENT = re.compile(r"\) \S (\d+) ")  # In /proc/PID/stat, after the name, which may have anything in it.

# An extern step sleeps for as long as its job lives, so that others can be adopted into it.
_EXTERN = re.compile(r"^slurmstepd: \[\d+\.extern\]")


@dataclass(frozen=True)
class Process:
    parent: int
    command_line: str


def steps_here(proc: Path = Path("/proc")) -> set[str]:
    """Ids of jobs with a step in this container."""
    return {job for process in dict(_processes(proc)).values() if (job := _step_of(process))}


def work_here(proc: Path = Path("/proc")) -> set[str]:
    """Ids of jobs with a process of their own.

    A step that is over stays for up to an hour while it cannot tell slurmctld so (seen with 26.05).
    """
    processes = dict(_processes(proc))
    return {
        job
        for process in processes.values()
        if not _step_of(process) and not _is_placeholder(process, processes)
        for job in _jobs_above(process, processes)
    }


def _is_placeholder(process: Process, processes: dict[int, Process]) -> bool:
    parent = processes.get(process.parent)
    is_in_extern = parent is not None and _EXTERN.match(parent.command_line) is not None
    return is_in_extern and process.command_line.startswith("sleep ")


def _jobs_above(process: Process, processes: dict[int, Process]) -> Iterator[str]:
    seen: set[int] = set()
    while process.parent in processes and process.parent not in seen:
        seen.add(process.parent)
        process = processes[process.parent]
        if job := _step_of(process):
            yield job


def _step_of(process: Process) -> str:
    found = _STEP.match(process.command_line)
    return found[1] if found else ""


def _processes(proc: Path) -> Iterator[tuple[int, Process]]:
    for directory in proc.glob("[0-9]*"):
        with suppress(OSError):  # It has just ended.
            line = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parent = _PARENT.search((directory / "stat").read_text(errors="replace"))
            yield int(directory.name), Process(int(parent[1]) if parent else 0, line)
