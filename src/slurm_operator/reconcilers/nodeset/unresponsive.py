"""Workers whose slurmd has stopped answering its kubelet while its container runs.

Nothing kills them: the jobs in the container go on without slurmd, and Slurm waits for SlurmdTimeout, too.
They are drained, so that no new job is sent to a slurmd that cannot start it, until it answers again.
"""

from datetime import datetime, timedelta

from slurm_operator.reconcilers.nodeset.members import Member

# Shorter pauses are ordinary: a reconfigure, or jobs that leave slurmd no CPU for a while.
UNRESPONSIVE_AFTER = timedelta(minutes=1)

# The cause of such a drain, as it stands in Slurm.
CAUSE = "Unresponsive"


def silent_since(member: Member) -> datetime | None:
    """Since when slurmd has not answered its kubelet; None when it does, or when that cannot be told.

    What counts is slurmd's own readiness, not the pod's. When a machine falls silent, Kubernetes calls its
    pods not ready, and so does a sidecar of the user's: neither says anything about slurmd. A machine that
    is silent does not tell what its slurmd does now.
    """
    slurmd = member.slurmd
    running = slurmd.state.running if slurmd is not None else None
    if slurmd is None or running is None or slurmd.ready or member.is_terminating or member.pod.has_ended:
        return None
    if _is_machine_silent(member):
        return None
    conditions = member.pod.status
    containers = conditions.condition("ContainersReady") or conditions.condition("Ready")
    if containers is None or containers.status != "False" or containers.last_transition_time is None:
        return None
    return max(containers.last_transition_time, running.started_at or containers.last_transition_time)


def has_been_ready(member: Member) -> bool:
    """This slurmd, since its container started. A probe that has never passed says nothing about slurmd:
    it may still be starting, or the probe is one of the user's that never passes.
    """
    slurmd, since = member.slurmd, silent_since(member)
    running = slurmd.state.running if slurmd is not None else None
    started_at = running.started_at if running is not None else None
    return since is not None and (started_at is None or since > started_at)


def is_unresponsive(member: Member, slurmctld_since: datetime | None, now: datetime) -> bool:
    """It is to take no new jobs. Once it is drained for that, only its slurmd's answer ends it."""
    if member.is_ready:
        return False  # As nearly always, and this is asked of thousands.
    if _is_drained_for_it(member):
        return member.slurmd is not None and not member.slurmd.ready
    wait = due_in(member, slurmctld_since, now)
    return wait is not None and wait <= timedelta(0)


def due_in(member: Member, slurmctld_since: datetime | None, now: datetime) -> timedelta | None:
    """How long until it counts as unresponsive; None when it is not about to.

    The time without slurmctld does not count. slurmd itself is ready without it (seen with 26.05), but a
    readiness probe of the user's may ask slurmctld, and then all workers would be drained at once.
    """
    since = silent_since(member)
    if since is None or slurmctld_since is None or not has_been_ready(member):
        return None
    return max(since, slurmctld_since) + UNRESPONSIVE_AFTER - now


def next_look(member: Member, slurmctld_since: datetime | None, now: datetime) -> timedelta | None:
    """How long until it is drained, or shown as late to start: nothing else may happen meanwhile."""
    due, since = due_in(member, slurmctld_since, now), silent_since(member)
    if due is not None or since is None:
        return due
    return since + UNRESPONSIVE_AFTER - now


def late_to_start(member: Member, now: datetime) -> bool:
    """Its slurmd has run for a while and was never ready. That is shown, and nothing is done about it."""
    since = silent_since(member)
    return since is not None and not has_been_ready(member) and now - since >= UNRESPONSIVE_AFTER


def _is_drained_for_it(member: Member) -> bool:
    ours = member.drain
    return ours is not None and ours.cause == CAUSE and member.is_drained_itself


def _is_machine_silent(member: Member) -> bool:
    conditions = member.kube_node.status.conditions if member.kube_node is not None else ()
    return any(one.type == "Ready" and one.status != "True" for one in conditions)
