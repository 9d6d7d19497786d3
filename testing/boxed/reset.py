"""Puts shared daemons back in order, so that one start serves many tests."""

import signal
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testing.daemons import SlurmDaemons


def reset(slurm: "SlurmDaemons", names: Sequence[str]) -> None:
    """Ends all jobs and reservations and leaves just these workers, registered and idle."""
    slurm.start()
    _clear(slurm)
    for name in slurm.workers.keys() - set(names):
        slurm.remove_worker(name)
    for name in _known_nodes(slurm) - set(names):
        _forget(slurm, name)
    for name in names:
        _revive(slurm, name)
    for name in names:
        slurm.wait_for(partial(_is_idle, slurm, name), f"{name} to be idle")


def _clear(slurm: "SlurmDaemons") -> None:
    for worker in slurm.workers.values():
        worker.slurmd.resume()
    if jobs := slurm.run("squeue", "--noheader", "--format=%A").split():
        slurm.run("scancel", *jobs)
    for line in slurm.run("scontrol", "--oneliner", "show", "reservations").splitlines():
        if line.startswith("ReservationName="):
            slurm.run("scontrol", "delete", line.split()[0])


def _known_nodes(slurm: "SlurmDaemons") -> set[str]:
    return set(slurm.run("sinfo", "--noheader", "--Node", "--format=%N").split())


def _forget(slurm: "SlurmDaemons", name: str) -> None:
    """Deletes the record of a worker that is gone, with jobs that slurmctld still believes to be there."""
    slurm.run("scontrol", "update", f"nodename={name}", "state=down", "reason=gone")

    def is_deleted() -> bool:
        return slurm.head.box.run("scontrol", "delete", f"nodename={name}", check=False).returncode == 0

    slurm.wait_for(is_deleted, f"{name} to be forgotten")


def _revive(slurm: "SlurmDaemons", name: str) -> None:
    worker = slurm.workers.get(name)
    if worker is None:
        slurm.add_worker(name)
    elif not worker.slurmd.is_running:
        worker.slurmd.start()
    elif "GONE" in slurm.node_states(name):
        worker.slurmd.signal(signal.SIGHUP)  # A deleted node comes back only when its slurmd is told to.


def _is_idle(slurm: "SlurmDaemons", name: str) -> bool:
    states = slurm.node_states(name)
    if states & {"DRAIN", "DOWN"}:
        slurm.head.box.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)
    return "IDLE" in states and not states & {"DRAIN", "COMPLETING", "NOT_RESPONDING"}
