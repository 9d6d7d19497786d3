"""Clusters of other users of this machine: their control groups have the same names as ours."""

import contextlib
import re
from pathlib import Path

from slurm_local.machine import cgroups
from slurm_local.paths import Paths


def foreign_home(name: str, paths: Paths) -> Path | None:
    """Where somebody else keeps the cluster of this name that runs here; None when nobody does."""
    return next((home for home in _homes(name) if home != paths.home), None)


def _homes(name: str) -> list[Path]:
    """The state directories of clusters of this name, as their components were told them."""
    lines = [_command_line(pid) for pid in sorted(cgroups.processes(cgroups.path_of(name)))]
    return [home for line in lines for home in homes_in(line, name)]


def homes_in(line: str, name: str) -> list[Path]:
    """State directories that a command line speaks of."""
    found = re.findall(rf"(?:^|[\0=,:])(/[^\0=,:]*)/clusters/{re.escape(name)}/", line)
    return [Path(each) for each in found]


def _command_line(pid: int) -> str:
    with contextlib.suppress(OSError):  # It has ended meanwhile.
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""
