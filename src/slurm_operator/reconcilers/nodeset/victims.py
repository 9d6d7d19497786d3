"""Who goes first when workers have to go.

The choice is made again in every pass and remembered nowhere. What was begun is known by the drain in Slurm:
a worker that drains to leave is chosen again although jobs have ended elsewhere since.
"""

import re
from datetime import UTC, datetime

from slurm_operator.api import names
from slurm_operator.reconcilers.nodeset.causes import Leaving
from slurm_operator.reconcilers.nodeset.members import FOREVER, Member
from slurm_operator.slurm.snapshot import Snapshot

# Drains of workers that are too many: in the NodeSet, or on one machine.
SURPLUS: frozenset[str] = frozenset({Leaving.SCALE_IN, Leaving.DUPLICATE})

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_COST = re.compile(r"-?(0|[1-9]\d{0,9})")


def victims_first(members: list[Member]) -> list[Member]:
    """The documented order: first those whose loss costs least, among equals those whose jobs end soonest.

    Whoever drains as surplus stays chosen before the ends of jobs are compared. One that is free by now comes
    before all others: to resume it and drain another one would give up what was already waited for.
    """
    return sorted(members, key=_rank)


def _rank(member: Member) -> tuple[object, ...]:
    pod = member.pod
    return (
        not is_free_surplus(member),
        bool(pod.spec.node_name),
        {"Unknown": 1, "Running": 2}.get(pod.status.phase, 0),
        member.is_ready,
        deletion_cost(member),
        _drains_as_surplus(member),
        _deadline(member),
        not (member.is_user_cordoned or member.is_node_cordoned),
        -(member.ordinal if member.ordinal is not None else -1),
        _newest_first(member.ready_changed_at if member.is_ready else None),
        _newest_first(pod.metadata.creation_timestamp),
        member.name,
    )


def is_surplus(member: Member) -> bool:
    """It was chosen in an earlier pass; the drain says so."""
    ours = member.drain
    return ours is not None and ours.cause in SURPLUS and member.is_drained_itself


def is_free_surplus(member: Member) -> bool:
    """It was chosen, and its jobs are over."""
    record = member.record
    return is_surplus(member) and not member.jobs and record is not None and record.state.is_drained


def _drains_as_surplus(member: Member) -> int:
    """0: it does; 2: it does not; 1: that is not known, because Slurm was not read since we wrote to it."""
    if is_surplus(member):
        return 0
    slurm = member.slurm
    return 1 if isinstance(slurm, Snapshot) and not slurm.is_current(member.slurm_node) else 2


def deletion_cost(member: Member) -> int:
    """Lower goes first; what is not a plain 32-bit number counts as 0."""
    text = member.pod.metadata.annotations.get(names.POD_DELETION_COST, "0")
    cost = int(text) if _COST.fullmatch(text) and text != "-0" else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _deadline(member: Member) -> datetime:
    """Idle workers before busy ones; a job without a time limit keeps its worker longest."""
    if not member.jobs:
        return _LONG_AGO
    return member.deadline or FOREVER


def _newest_first(moment: datetime | None) -> float:
    """A missing time sorts as the newest of all."""
    return -moment.timestamp() if moment is not None else float("-inf")
