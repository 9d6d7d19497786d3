"""Directories that are filled once. A stamp, written last, tells a finished one from an interrupted one."""

from collections.abc import Callable, Iterable
from contextlib import suppress
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


def latest_first(directories: Iterable[Path]) -> list[Path]:
    """Those that are complete, by their stamps. Another start may remove one at any moment."""
    found = []
    for directory in directories:
        with suppress(FileNotFoundError, NotADirectoryError):  # Locks are files beside them.
            found.append(((directory / STAMP).stat().st_mtime_ns, directory))
    return [directory for _, directory in sorted(found, reverse=True)]
