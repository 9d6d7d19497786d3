"""Whether a Kubernetes node may be deleted as far as jobs go: Kubernetes then removes every pod on it.

As for a worker, only positive and fresh knowledge counts.
"""

from collections.abc import Iterable
from datetime import datetime

from slurm_operator.safety.gate import Candidate, jobs_on, jobs_text, old_answer
from slurm_operator.slurm.snapshot import Unreachable


def why_not_removed(workers: Iterable[Candidate], now: datetime) -> str | None:
    """What speaks against it; None if no job can be in any of these pods."""
    return next((why for worker in workers if (why := _why_not(worker, now)) is not None), None)


def _why_not(worker: Candidate, now: datetime) -> str | None:
    name, slurm = worker.slurm_node, worker.slurm
    if worker.pod.has_ended:
        return None
    if isinstance(slurm, Unreachable):
        return f"Slurm does not answer ({slurm.why}), so nobody can tell whether a job runs on {name}"
    if (old := old_answer(name, slurm, now)) is not None:
        return f"{name}: {old.message}"
    if worker.state_lost_since is not None:
        return f"slurmctld lost its state, and a job that it forgot may run on {name}"
    if jobs := jobs_on(name, slurm):
        return f"Slurm counts {jobs_text(jobs)} on {name}"
    record = slurm.nodes.get(name)
    if record is None:
        has_run = worker.slurmd is not None and worker.slurmd.has_ever_started
        return (
            f"Slurm does not know {name}, though slurmd has run: a job may still be there"
            if has_run
            else None
        )
    if not (record.state.is_drained or record.state.is_down):
        return f"Slurm has neither drained {name} nor given it up, so a job may start there"
    return None
