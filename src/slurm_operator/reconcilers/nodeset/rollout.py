"""Which workers are replaced next because what they are made from has changed."""

import math
from collections.abc import Mapping
from datetime import datetime

from slurm_operator.api.updates import UpdateType
from slurm_operator.reconcilers.nodeset.causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.choices import Choices
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.revisions import Revision
from slurm_operator.reconcilers.nodeset.victims import victims_first
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Snapshot


def replaced(seen: Seen, choices: Choices, revision: Revision, now: datetime) -> Mapping[str, Cause]:
    """Workers of an older revision that go now, within the budget: broken ones, a canary, then the rest."""
    strategy = seen.nodeset.spec.update_strategy
    if strategy.effective_type is not UpdateType.ROLLING_UPDATE or seen.nodeset.metadata.is_terminating:
        return {}
    staying = [m for m in seen.members if m.uid not in choices.leaving and not m.is_terminating]
    old = [member for member in staying if member.revision != revision.hash]
    cause = Cause(Leaving.UPDATE, f"being replaced by revision {revision.hash}")
    broken = [member for member in old if not member.pod.is_ready]
    healthy = [member for member in old if member.pod.is_ready]
    chosen = [*broken, *_next(seen, choices, healthy, staying, revision, now)]
    return {member.uid: cause for member in chosen}


def _next(
    seen: Seen,
    choices: Choices,
    healthy: list[Member],
    staying: list[Member],
    revision: Revision,
    now: datetime,
) -> list[Member]:
    """As many healthy ones as may be away on top of what is away already, whatever the cause."""
    serving = [member for member in staying if is_serving(member, seen, now)]
    under_way = [member for member in healthy if _drains_for_update(member)]
    may_go = budget(seen, choices.desired) - (choices.desired - len(serving))
    fresh = [member for member in staying if member.revision == revision.hash]
    if not any(member.is_registered for member in fresh):
        # Nobody of the new revision has shown that it works: one goes ahead, the rest wait for it.
        may_go = min(may_go, 0 if fresh else 1 - len(under_way))
    others = [member for member in victims_first(healthy) if member not in under_way]
    return [*under_way, *others[: max(0, may_go)]]


def is_serving(member: Member, seen: Seen, now: datetime) -> bool:
    """It could take a job now, as far as anybody can see."""
    if not member.is_available(now, seen.nodeset.spec.min_ready_seconds):
        return False
    if not isinstance(seen.slurm, Snapshot):
        return True
    return member.record is not None and not member.record.state.is_drain and not member.record.state.is_down


def _drains_for_update(member: Member) -> bool:
    """It was chosen in an earlier pass; the drain says so. Nobody is let go half-way."""
    record = member.record
    ours = OurReason.read(record.reason) if record is not None and record.state.is_drain else None
    return ours is not None and ours.cause == Leaving.UPDATE and ours.pod_uid == member.uid


def budget(seen: Seen, desired: int) -> int:
    """How many workers may be away at once; a share is rounded up, and what cannot be read counts as 1."""
    wanted = seen.nodeset.spec.update_strategy.rolling_update.max_unavailable
    if isinstance(wanted, int):
        return max(1, wanted)
    share = wanted.removesuffix("%")
    if not share.isdecimal():
        return 1
    return max(1, math.ceil(desired * int(share) / 100) if wanted.endswith("%") else int(share))
