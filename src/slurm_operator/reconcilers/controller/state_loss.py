"""Whether slurmctld still has its memory: one that lost its state answers, but knows no worker any more.

Workers that registered themselves are in no file, so with the state directory slurmctld forgets them and
their jobs, while slurmd and the jobs go on. What it then says about jobs is worth nothing until all workers
are back, so the gate lets nobody go meanwhile.
"""

from datetime import datetime, timedelta

from slurm_operator.listing import first_few
from slurm_operator.manifests.objects import Pod
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.slurm.snapshot import Snapshot

# A worker that is ready has registered a moment before or registers a moment later.
SETTLED_AFTER = timedelta(seconds=15)


def known_since(seen: Seen) -> datetime | None:
    """Since when slurmctld has known workers; None before the first came, and when none are wanted any more.

    Without this, workers that never managed to register would look like workers that were forgotten.
    """
    before = seen.controller.status.workers_known_since
    if not seen.nodesets:
        return None
    if before is not None or not isinstance(seen.slurm, Snapshot):
        return before
    is_known = any(name in seen.slurm.nodes for name in seen.workers)
    return _whole_second(seen.slurm.nodes_asked_at) if is_known else None


def lost_since(seen: Seen) -> datetime | None:
    """Since when slurmctld has been without its previous state; None when it has it, or all are back."""
    before, slurm = seen.controller.status.state_lost_since, seen.slurm
    if not isinstance(slurm, Snapshot):
        return before
    absent = unknown_workers(seen)
    if before is not None:
        return before if absent else None
    is_first_look = seen.controller.status.workers_known_since is None
    knows_any = any(name in slurm.nodes for name in seen.workers)
    has_running_jobs = any(job.state.holds_node for job in slurm.jobs.values())
    if is_first_look or knows_any or has_running_jobs or not absent:
        return None
    return _whole_second(slurm.nodes_asked_at)


def unknown_workers(seen: Seen) -> list[str]:
    """Workers that run and should long be known, but are not."""
    if not isinstance(seen.slurm, Snapshot):
        return []
    asked_at, nodes = seen.slurm.nodes_asked_at, seen.slurm.nodes
    return [name for name, pod in seen.workers.items() if name not in nodes and _is_settled(pod, asked_at)]


def state_loss_text(seen: Seen) -> str:
    """For people: what happened, what happens next, what they can do. Empty when nothing did."""
    since = lost_since(seen)
    if since is None:
        return ""
    absent = unknown_workers(seen)
    named = first_few(absent, 3)
    missing = f" Not back yet: {named}." if absent else ""
    return (
        f"slurmctld has been without its previous state since {since:%H:%M:%S} UTC: it answers, but it "
        "forgot its workers and their jobs. Nothing is removed until every worker has registered again, "
        f"which happens automatically.{missing} Check the volume of its state."
    )


def _is_settled(pod: Pod, asked_at: datetime) -> bool:
    ready = pod.status.condition("Ready")
    if ready is None or ready.status != "True" or ready.last_transition_time is None:
        return False
    return ready.last_transition_time + SETTLED_AFTER <= asked_at


def _whole_second(moment: datetime) -> datetime:
    """As the API server keeps it."""
    return moment.replace(microsecond=0)
