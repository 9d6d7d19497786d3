"""Takes a cluster down: everything it made is gone afterwards, and nothing else."""

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from slurm_local import home
from slurm_local.errors import LocalError
from slurm_local.machine import cgroups
from slurm_local.machine.locks import exclusive, exclusive_directory
from slurm_local.machine.neighbours import foreign_home
from slurm_local.paths import Paths
from slurm_local.progress import Progress
from slurm_local.state import Ledger


def down(name: str, paths: Paths, progress: Progress, *, keep_home: bool = False) -> bool:
    """Ends a cluster, running, half started or crashed. False when there was none.

    A /home that was kept by an earlier one goes too, unless it is kept again.
    """
    homes = paths.home_of(name)
    with exclusive(cluster_lock(name, paths)):
        had_cluster, had_home = paths.cluster(name).exists(), homes.exists()
        if had_cluster:
            with progress.step(f"Taking down cluster {name}"):
                remove(name, paths)
        if had_home and not keep_home:
            with progress.step(f"Deleting /home of cluster {name}, {homes}"):
                home.remove(homes)
        if had_home and keep_home:
            progress.note(f"/home is kept in {homes}. The next cluster of this name has it again.")
        _remove_empty(paths)
    return had_cluster or (had_home and not keep_home)


def remove(name: str, paths: Paths) -> None:
    """Ends the processes first: with them go mounts, network devices and rules. Then what lies outside."""
    directory = paths.cluster(name)
    state = Ledger(directory).read()
    if state is not None:
        state.cell.end()
        # The device goes with the namespace, but only some time later.
        subprocess.run(["ip", "link", "delete", state.link.device], capture_output=True, check=False)
    # What else is in a group of this name is of another user, whose cluster is none of ours to end.
    if foreign_home(name, paths) is None:
        cgroups.kill(cgroups.path_of(name))
        cgroups.remove(cgroups.path_of(name))
    # No mount of ours is visible out here; should a stranger's be, it is left alone.
    done = subprocess.run(
        ["rm", "-rf", "--one-file-system", str(directory)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LocalError(f"Cannot remove {directory}: {done.stderr.strip()}")
    _remove_empty(paths)


def _remove_empty(paths: Paths) -> None:
    with machine_lock():
        for empty in (paths.clusters, paths.homes, paths.home):
            with contextlib.suppress(OSError):  # Other clusters are there.
                empty.rmdir()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A second Ctrl-C does not stop the clean-up of the first."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Ctrl-C reaches the main thread alone.
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def cluster_lock(name: str, paths: Paths) -> Path:
    """Held while one cluster is started or ended."""
    return paths.locks / f"cluster-{name}"


def machine_lock() -> contextlib.AbstractContextManager[None]:
    """Held for moments, while something is chosen that all clusters share, those of other users too.

    A directory that every user of this machine has, so that no lock file stays behind.
    """
    return exclusive_directory(cgroups.ROOT)
