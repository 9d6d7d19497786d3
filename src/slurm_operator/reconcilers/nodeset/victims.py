"""Who goes first when workers have to go."""

import re
from datetime import UTC, datetime

from slurm_operator.api import names
from slurm_operator.reconcilers.nodeset.members import FOREVER, Member

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_COST = re.compile(r"-?(0|[1-9]\d{0,9})")


def victims_first(members: list[Member]) -> list[Member]:
    """The documented order: first those whose loss costs least, among equals those whose jobs end soonest."""
    return sorted(members, key=_rank)


def _rank(member: Member) -> tuple[object, ...]:
    pod = member.pod
    return (
        bool(pod.spec.node_name),
        {"Unknown": 1, "Running": 2}.get(pod.status.phase, 0),
        member.is_ready,
        deletion_cost(member),
        _deadline(member),
        not (member.is_user_cordoned or member.is_node_cordoned),
        -(member.ordinal if member.ordinal is not None else -1),
        _newest_first(member.ready_changed_at if member.is_ready else None),
        _newest_first(pod.metadata.creation_timestamp),
        member.name,
    )


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
