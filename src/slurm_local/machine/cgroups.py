"""Control groups of our own: a tree per cluster, a branch per node, in every hierarchy the machine has."""

import contextlib
import os
import signal
import time
from pathlib import Path

from slurm_local.errors import LocalError

ROOT = Path("/sys/fs/cgroup")
_OURS = "slurm-operator"
_CONTROLLERS_V2 = "+cpu +cpuset +io +memory +pids"


def hierarchies() -> list[Path]:
    """The directories in which a group must be made: one with cgroup v2, one per controller with v1."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    # `cpu,cpuacct` and its two links are one hierarchy.
    return sorted({path.resolve() for path in ROOT.iterdir() if (path / "cgroup.procs").exists()})


def path_of(*names: str) -> str:
    """A group's path as the kubelet and runc write it."""
    return "/".join(["", _OURS, *names])


def make(path: str) -> list[Path]:
    """Makes the group in each hierarchy, and gives back the directories."""
    return [_make_in(hierarchy, path) for hierarchy in hierarchies()]


def _make_in(hierarchy: Path, path: str) -> Path:
    directory = hierarchy
    for name in path.strip("/").split("/"):
        parent, directory = directory, directory / name
        if (parent / "cgroup.subtree_control").exists() and hierarchy == ROOT:
            with contextlib.suppress(
                OSError
            ):  # A controller the machine lacks; the kubelet names it if it matters.
                (parent / "cgroup.subtree_control").write_text(_CONTROLLERS_V2)
        directory.mkdir(exist_ok=True)
        for limit in ("cpuset.cpus", "cpuset.mems"):
            # With v1 a new group has no processors and no memory, and nothing can run in it.
            file = directory / limit
            if file.exists() and not file.read_text().strip() and hierarchy != ROOT:
                file.write_text((parent / limit).read_text())
    return directory


def processes(path: str) -> set[int]:
    """Every process in the group and below, in any hierarchy."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        # Groups come and go while we look; os.walk passes over those that are gone.
        for directory, _, _ in os.walk(hierarchy / path.strip("/")):
            with contextlib.suppress(OSError):
                found.update(int(pid) for pid in Path(directory, "cgroup.procs").read_text().split())
    return found - {0}


def kill(path: str, deadline_s: float = 30) -> None:
    """Ends every process in the group and below."""
    give_up = time.monotonic() + deadline_s
    while pids := processes(path):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > give_up:
            raise LocalError(f"Processes in control group {path} do not end: {sorted(pids)}")
        time.sleep(0.02)


def remove(path: str) -> None:
    """Removes the group and all below it, and our own top when it is empty then."""
    for hierarchy in hierarchies():
        top = hierarchy / path.strip("/")
        # A group is a directory whose files vanish with it: only directories can and must be removed.
        for directory in [*sorted(top.rglob("*/"), reverse=True), top]:
            _remove_one(directory)
        with contextlib.suppress(OSError):
            (hierarchy / _OURS).rmdir()


def _remove_one(directory: Path, deadline_s: float = 10) -> None:
    give_up = time.monotonic() + deadline_s
    while directory.is_dir():
        try:
            directory.rmdir()
        except OSError:  # Busy for a moment after its last process ended.
            if time.monotonic() > give_up:
                raise
            time.sleep(0.02)
