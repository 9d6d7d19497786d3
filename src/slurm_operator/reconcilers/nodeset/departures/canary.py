"""Who goes ahead, while nobody of a new revision has shown that it works.

One goes, and the rest waits for the worker that comes in its place. So it is one that can go, and whose
successor can start: behind any other the update would stand still, whatever the new revision is like.
"""

from collections.abc import Iterator, Set
from datetime import datetime, timedelta

from slurm_operator.reconcilers.nodeset.creation import placement
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from slurm_operator.reconcilers.nodeset.departures.replica_plan import Choices
from slurm_operator.reconcilers.nodeset.departures.scale_in_order import victims_first
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records.outdated import FRESH_RECORD
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Leaving
from slurm_operator.reconcilers.nodeset.worker.removal import GRACE_SECONDS, is_marked_by_others
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import Shut, ShutFor, gate
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Unreachable
from slurm_operator.slurm.wire_words import being_replaced

# When a pod is still there so long after its grace period, its machine does not answer.
ENDS_WITHIN = timedelta(seconds=30)

# When a pod has no machine so long after it was made, there is none for it.
PLACED_WITHIN = timedelta(seconds=30)

# Workers that leave for one of these come back under the same name at once.
COMES_BACK = {Leaving.ENDED, Leaving.FORGOTTEN, Leaving.RESOURCES, Leaving.UNPINNED}


def best(workers: list[Worker], free: Set[str], seen: Seen, now: datetime) -> Worker | None:
    """Who can go now before who is held up, and before others those whose machine takes the next worker.

    There, one in use tells more than one that is out of use (`free`, by uid): that may be for a reason that
    its successor suffers from as well. Where the successor may find no place, it is the one that costs less.
    """

    def rank(worker: Worker) -> tuple[bool, ...]:
        takes_next, is_free = machine_takes_next(worker, seen), worker.uid in free
        return is_held_up(worker, now), not takes_next, is_free is takes_next

    ordered = victims_first(workers)
    perfect = (worker for worker in ordered if not any(rank(worker)))  # Mostly the first, of thousands.
    return next(perfect, None) or min(ordered, key=rank, default=None)


def is_held_up(worker: Worker, now: datetime) -> bool:
    """Drained or not, it would not go in the next moments: it has jobs, or nobody can tell."""
    if worker.jobs:
        return True
    verdict = gate(worker, now)
    if not isinstance(verdict, Shut):
        return False
    match verdict.reason:
        case ShutFor.NOT_DRAINING | ShutFor.DRAINING | ShutFor.OLD_ANSWER:
            return is_marked_by_others(worker)
        case ShutFor.SLURM_UNREACHABLE | ShutFor.UNKNOWN_TO_SLURM | ShutFor.STATE_LOST:
            return True
        case ShutFor.ANOTHER_WORKER | ShutFor.STARTING | ShutFor.CRASHED:
            return True


def machine_takes_next(worker: Worker, seen: Seen) -> bool:
    """Its successor can start where it is. Where machines are not seen, it may."""
    kube_node = worker.kube_node
    return not seen.sees_machines or (kube_node is not None and placement.should_run(kube_node, seen.nodeset))


def note(revision: Revision) -> str:
    """Said in the drain of one that goes ahead, so that its successor, too, is known by the record."""
    return being_replaced(revision.hash, is_ahead=True)


def has_gone_ahead(seen: Seen, choices: Choices, revision: Revision, now: datetime) -> bool:
    """Somebody is, or is about to be, of the new revision and on a machine, and will show what it is like.

    Whoever still ends long after it should have is on a machine that is gone, and nobody comes in its place.
    """
    if choices.create:
        return True
    if any(m.ends_within(GRACE_SECONDS) and ends_in(m, now) > timedelta(0) for m in seen.workers):
        return True
    new = [m for m in seen.workers if m.revision == revision.hash and _comes_back(m, choices)]
    if any(worker.pod.spec.node_name or placed_in(worker, now) > timedelta(0) for worker in new):
        return True
    # One that made room for itself may have lost it to a cordon or a stranger. With two it is the revision.
    return sum(1 for worker in new if _made_room(worker, revision)) > 1


def _comes_back(worker: Worker, choices: Choices) -> bool:
    cause = choices.leaving.get(worker.uid)
    return cause is None or (cause.kind in COMES_BACK and not worker.is_terminating)


def _made_room(worker: Worker, revision: Revision) -> bool:
    """It has no machine, though the worker before it left one that would take it, as its drain says.

    The record of one that went with other resources is gone by now, and the pod says so, as a rule.
    """
    if isinstance(worker.slurm, Unreachable) or FRESH_RECORD in worker.pod.metadata.annotations:
        return True
    record = worker.namesake
    ours = OurReason.read(record.reason) if record is not None and record.is_drained_by_us else None
    return ours is not None and note(revision) in ours.text


def ends_in(worker: Worker, now: datetime) -> timedelta:
    """How long until a pod that was asked to end should be gone, however slow its machine is."""
    ends = worker.pod.metadata.deletion_timestamp
    return ends + ENDS_WITHIN - now if ends is not None else timedelta(0)


def placed_in(worker: Worker, now: datetime) -> timedelta:
    """How long until a pod should have a machine, however slow the scheduler is."""
    made = worker.pod.metadata.creation_timestamp
    return made + PLACED_WITHIN - now if made is not None else timedelta(0)


def times_until_reassessed(worker: Worker, now: datetime) -> Iterator[timedelta]:
    """After which times an update judges a worker again, though nothing about it has changed."""
    if worker.is_terminating:
        yield ends_in(worker, now)
        return
    if not worker.is_ready:
        yield worker.ready_again_in(now)
    if not worker.pod.spec.node_name:
        yield placed_in(worker, now)
