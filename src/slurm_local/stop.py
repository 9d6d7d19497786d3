"""Takes a cluster down: everything it made is gone afterwards, and nothing else."""

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from slurm_local.errors import LocalError
from slurm_local.machine import cgroups
from slurm_local.machine.locks import exclusive
from slurm_local.paths import Paths
from slurm_local.progress import Progress
from slurm_local.state import Ledger


def down(name: str, paths: Paths, progress: Progress) -> bool:
    """Ends a cluster, running, half started or crashed. False when there was none."""
    with exclusive(cluster_lock(name, paths)):
        if not paths.cluster(name).exists():
            return False
        with progress.step(f"Taking down cluster {name}"):
            remove(name, paths)
    return True


def remove(name: str, paths: Paths) -> None:
    """Ends the processes first: with them go mounts, network devices and rules. Then what lies outside."""
    directory = paths.cluster(name)
    state = Ledger(directory).read()
    if state is not None:
        state.cell.end()
        # The device goes with the namespace, but only some time later.
        subprocess.run(["ip", "link", "delete", state.link.device], capture_output=True, check=False)
    cgroups.kill(cgroups.path_of(name))
    cgroups.remove(cgroups.path_of(name))
    # No mount of ours is visible out here; should a stranger's be, it is left alone.
    done = subprocess.run(
        ["rm", "-rf", "--one-file-system", str(directory)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LocalError(f"Cannot remove {directory}: {done.stderr.strip()}")
    with exclusive(machine_lock(paths)):
        for empty in (paths.clusters, paths.home):
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


def machine_lock(paths: Paths) -> Path:
    """Held for moments, while something is chosen that all clusters share."""
    return paths.locks / "machine"
