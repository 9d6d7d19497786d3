"""Who goes ahead, while nobody of a new revision has shown that it works.

One goes, and the rest waits for the worker that comes in its place. So it is one that can go, and whose
successor can start: behind any other the update would stand still, whatever the new revision is like.
"""

from collections.abc import Iterator, Set
from datetime import datetime, timedelta

from slurm_operator.plan.gate import Shut, gate
from slurm_operator.reconcilers.nodeset import placement
from slurm_operator.reconcilers.nodeset.causes import Leaving
from slurm_operator.reconcilers.nodeset.choices import Choices
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records import FRESH_RECORD
from slurm_operator.reconcilers.nodeset.retire import GRACE_SECONDS, is_marked_by_others
from slurm_operator.reconcilers.nodeset.revisions import Revision
from slurm_operator.reconcilers.nodeset.victims import victims_first
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Unreachable

# When a pod is still there so long after its grace period, its machine does not answer.
ENDS_WITHIN = timedelta(seconds=30)

# When a pod has no machine so long after it was made, there is none for it.
PLACED_WITHIN = timedelta(seconds=30)

# Workers that leave for one of these come back under the same name at once.
COMES_BACK = {Leaving.ENDED, Leaving.RESOURCES, Leaving.UNPINNED}


def best(members: list[Member], free: Set[str], seen: Seen, now: datetime) -> Member | None:
    """Who can go now before who is held up, and before others those whose machine takes the next worker.

    There, one in use tells more than one that is out of use (`free`, by uid): that may be for a reason that
    its successor suffers from as well. Where the successor may find no place, it is the one that costs less.
    """

    def rank(member: Member) -> tuple[bool, ...]:
        takes_next, is_free = machine_takes_next(member, seen), member.uid in free
        return is_held_up(member, now), not takes_next, is_free is takes_next

    ordered = victims_first(members)
    perfect = (member for member in ordered if not any(rank(member)))  # Mostly the first, of thousands.
    return next(perfect, None) or min(ordered, key=rank, default=None)


def is_held_up(member: Member, now: datetime) -> bool:
    """Drained or not, it would not go in the next moments: it has jobs, or nobody can tell."""
    if member.jobs:
        return True
    match gate(member, now):
        case Shut(reason="NotDraining" | "Draining" | "OldAnswer"):
            return is_marked_by_others(member)
        case Shut():
            return True
        case _:
            return False


def machine_takes_next(member: Member, seen: Seen) -> bool:
    """Its successor can start where it is. Where machines are not seen, it may."""
    kube_node = member.kube_node
    return not seen.sees_machines or (kube_node is not None and placement.should_run(kube_node, seen.nodeset))


def note(revision: Revision) -> str:
    """Said in the drain of one that goes ahead, so that its successor, too, is known by the record."""
    return f"being replaced by revision {revision.hash}, ahead of the others"


def has_gone_ahead(seen: Seen, choices: Choices, revision: Revision, now: datetime) -> bool:
    """Somebody is, or is about to be, of the new revision and on a machine, and will show what it is like.

    Whoever still ends long after it should have is on a machine that is gone, and nobody comes in its place.
    """
    if choices.create:
        return True
    if any(m.ends_within(GRACE_SECONDS) and ends_in(m, now) > timedelta(0) for m in seen.members):
        return True
    new = [m for m in seen.members if m.revision == revision.hash and _comes_back(m, choices)]
    if any(member.pod.spec.node_name or placed_in(member, now) > timedelta(0) for member in new):
        return True
    # One that made room for itself may have lost it to a cordon or a stranger. With two it is the revision.
    return sum(1 for member in new if _made_room(member, revision)) > 1


def _comes_back(member: Member, choices: Choices) -> bool:
    cause = choices.leaving.get(member.uid)
    return cause is None or (cause.kind in COMES_BACK and not member.is_terminating)


def _made_room(member: Member, revision: Revision) -> bool:
    """It has no machine, though the worker before it left one that would take it, as its drain says.

    The record of one that went with other resources is gone by now, and the pod says so, as a rule.
    """
    if isinstance(member.slurm, Unreachable) or FRESH_RECORD in member.pod.metadata.annotations:
        return True
    record = member.namesake
    ours = OurReason.read(record.reason) if record is not None and record.is_drained_by_us else None
    return ours is not None and note(revision) in ours.text


def ends_in(member: Member, now: datetime) -> timedelta:
    """How long until a pod that was asked to end should be gone, however slow its machine is."""
    ends = member.pod.metadata.deletion_timestamp
    return ends + ENDS_WITHIN - now if ends is not None else timedelta(0)


def placed_in(member: Member, now: datetime) -> timedelta:
    """How long until a pod should have a machine, however slow the scheduler is."""
    made = member.pod.metadata.creation_timestamp
    return made + PLACED_WITHIN - now if made is not None else timedelta(0)


def goes_by(member: Member, now: datetime) -> Iterator[timedelta]:
    """After which times an update judges a worker anew, though nothing about it has changed."""
    if member.is_terminating:
        yield ends_in(member, now)
        return
    if not member.is_ready:
        yield member.ready_again_in(now)
    if not member.pod.spec.node_name:
        yield placed_in(member, now)
