"""Workers whose slurmd has stopped answering its kubelet while its container runs.

Nothing kills them: the jobs in the container go on without slurmd, and Slurm waits for SlurmdTimeout, too.
They are drained, so that no new job is sent to a slurmd that cannot start it, until it answers again.
"""

from datetime import datetime, timedelta

from slurm_operator.conditions import Reason
from slurm_operator.reconcilers.nodeset.workers import Worker

# Shorter pauses are ordinary: a reconfigure, or jobs that leave slurmd no CPU for a while.
UNRESPONSIVE_AFTER = timedelta(minutes=1)

# The cause of such a drain, as it stands in Slurm.
CAUSE = Reason.UNRESPONSIVE


def silent_since(worker: Worker) -> datetime | None:
    """Since when slurmd has not answered its kubelet; None when it does, or when that cannot be told.

    What counts is slurmd's own readiness, not the pod's. When a machine falls silent, Kubernetes calls its
    pods not ready, and so does a sidecar of the user's: neither says anything about slurmd. A machine that
    is silent does not tell what its slurmd does now.
    """
    slurmd = worker.slurmd
    running = slurmd.state.running if slurmd is not None else None
    if slurmd is None or running is None or slurmd.ready or worker.is_terminating or worker.pod.has_ended:
        return None
    if _is_machine_silent(worker):
        return None
    conditions = worker.pod.status
    containers = conditions.condition("ContainersReady") or conditions.condition("Ready")
    if containers is None or containers.status != "False" or containers.last_transition_time is None:
        return None
    return max(containers.last_transition_time, running.started_at or containers.last_transition_time)


def has_been_ready(worker: Worker) -> bool:
    """This slurmd, since its container started. A probe that has never passed says nothing about slurmd:
    it may still be starting, or the probe is one of the user's that never passes.
    """
    slurmd, since = worker.slurmd, silent_since(worker)
    running = slurmd.state.running if slurmd is not None else None
    started_at = running.started_at if running is not None else None
    return since is not None and (started_at is None or since > started_at)


def is_unresponsive(worker: Worker, slurmctld_since: datetime | None, now: datetime) -> bool:
    """It is to take no new jobs. Once it is drained for that, only its slurmd's answer ends it."""
    if worker.is_ready:
        return False  # As nearly always, and this is asked of thousands.
    if _is_drained_for_it(worker):
        return worker.slurmd is not None and not worker.slurmd.ready
    wait = due_in(worker, slurmctld_since, now)
    return wait is not None and wait <= timedelta(0)


def due_in(worker: Worker, slurmctld_since: datetime | None, now: datetime) -> timedelta | None:
    """How long until it counts as unresponsive; None when it is not about to.

    The time without slurmctld does not count. slurmd itself is ready without it (seen with 26.05), but a
    readiness probe of the user's may ask slurmctld, and then all workers would be drained at once.
    """
    since = silent_since(worker)
    if since is None or slurmctld_since is None or not has_been_ready(worker):
        return None
    return max(since, slurmctld_since) + UNRESPONSIVE_AFTER - now


def next_look(worker: Worker, slurmctld_since: datetime | None, now: datetime) -> timedelta | None:
    """How long until it is drained, or shown as late to start: nothing else may happen meanwhile."""
    due, since = due_in(worker, slurmctld_since, now), silent_since(worker)
    if due is not None or since is None:
        return due
    return since + UNRESPONSIVE_AFTER - now


def late_to_start(worker: Worker, now: datetime) -> bool:
    """Its slurmd has run for a while and was never ready. That is shown, and nothing is done about it."""
    since = silent_since(worker)
    return since is not None and not has_been_ready(worker) and now - since >= UNRESPONSIVE_AFTER


def _is_drained_for_it(worker: Worker) -> bool:
    ours = worker.drain
    return ours is not None and ours.cause == CAUSE and worker.is_drained_itself


def _is_machine_silent(worker: Worker) -> bool:
    conditions = worker.kube_node.status.conditions if worker.kube_node is not None else ()
    return any(one.type == "Ready" and one.status != "True" for one in conditions)
