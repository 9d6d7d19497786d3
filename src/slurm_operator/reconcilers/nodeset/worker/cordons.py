"""Workers that a user took out of service: whoever comes in place of one is out of service, too.

The annotation that says so is on the pod and goes with it, and nothing else tells what a user wants. So it is
kept in the status from the moment it is seen.
"""

from collections.abc import Iterable

from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.departures.replica_plan import awaited
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.workers import Worker


def remembered(seen: Seen) -> list[str]:
    """For the status, by pod name. Forgotten when a pod is there without it, or nobody comes any more."""
    before, cordoned = seen.nodeset.status.cordoned, [m for m in seen.workers if m.is_user_cordoned]
    if not before and not cordoned:
        return []
    now, there = _names(cordoned, seen), _names(seen.workers, seen)
    away = {name for name in before if name not in there}
    if away and (seen.sees_machines or not seen.is_daemon):
        away &= awaited(seen)
    return sorted(now | away)


def _names(workers: Iterable[Worker], seen: Seen) -> set[str]:
    """What those are called who come in their place; those of another mode have none."""
    nodeset = seen.nodeset
    own = (worker for worker in workers if worker.mode is nodeset.spec.scaling_mode)
    return {identity.next_name(worker.pod, nodeset) for worker in own}
