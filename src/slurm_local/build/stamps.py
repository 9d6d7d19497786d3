"""Directories that are filled once. A stamp, written last, tells a finished one from an interrupted one."""

from collections.abc import Callable
from pathlib import Path

from slurm_local.machine.locks import exclusive

STAMP = ".complete"


def once(directory: Path, fill: Callable[[Path], None]) -> Path:
    """`directory`, filled completely. An interrupted filling is taken up again; two never run at once."""
    if is_complete(directory):
        return directory
    with exclusive(directory.with_name(f".{directory.name}.lock")):
        if not is_complete(directory):  # The other process may have finished it while we waited.
            directory.mkdir(parents=True, exist_ok=True)
            fill(directory)
            (directory / STAMP).touch()
    return directory


def is_complete(directory: Path) -> bool:
    return (directory / STAMP).exists()
