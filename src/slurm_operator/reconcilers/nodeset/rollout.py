"""Which workers are replaced next because what they are made from has changed."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta

from slurm_operator.api.updates import UpdateType
from slurm_operator.reconcilers.nodeset.causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.choices import Choices
from slurm_operator.reconcilers.nodeset.maintenance import in_window
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.pod import RESOURCES_DIGEST, resources_digest
from slurm_operator.reconcilers.nodeset.revisions import Revision
from slurm_operator.reconcilers.nodeset.victims import victims_first
from slurm_operator.slurm.snapshot import Snapshot

# How long a worker that Slurm counts on may be unready before an update takes it for broken.
UNREADY_FOR = timedelta(seconds=30)


def replaced(seen: Seen, choices: Choices, revision: Revision, now: datetime) -> Mapping[str, Cause]:
    """Workers of an older revision that go now, within the budget: broken ones, a canary, then the rest."""
    strategy = seen.nodeset.spec.update_strategy.effective_type
    if strategy is UpdateType.ON_DELETE or seen.nodeset.metadata.is_terminating:
        return {}
    staying = [m for m in seen.members if m.uid not in choices.leaving and not m.is_terminating]
    old = [member for member in staying if member.revision != revision.hash]
    if not old:
        return {}
    broken = [member for member in old if is_broken(member, now)]
    if strategy is UpdateType.SCHEDULED_UPDATE:
        going = [*broken, *(member for member in old if in_window(member, seen))]
        return _causes(going, seen, revision)
    under_way = [member for member in _without(old, broken) if _drains_for_update(member)]
    others = _without(victims_first(old), [*under_way, *broken])
    # Whoever takes no jobs anyway costs nothing; the rest has to fit beside all who are away already.
    free = [member for member in others if isinstance(seen.slurm, Snapshot) and not is_in_use(member)]
    costly = _without(others, free)
    may_go = budget(seen, choices.desired) - _away(seen, choices, staying, now)
    chosen = [*free, *costly[: max(0, may_go)]]
    if not any(member.is_registered for member in staying if member.revision == revision.hash):
        # Nobody of the new revision has shown that it works: one goes ahead, the rest wait for it.
        chosen = chosen[: max(0, 1 - _gone_ahead(choices, staying, old, [*under_way, *broken]))]
    return _causes([*under_way, *broken, *chosen], seen, revision)


def _without(members: list[Member], others: list[Member]) -> list[Member]:
    """By uid: to compare a thousand workers with each other word for word would take long."""
    left_out = {member.uid for member in others}
    return [member for member in members if member.uid not in left_out]


def _causes(going: list[Member], seen: Seen, revision: Revision) -> dict[str, Cause]:
    """Other resources need another record in Slurm, so such a drain says that it is about them."""
    text, wanted = f"being replaced by revision {revision.hash}", resources_digest(seen.nodeset)

    def cause(member: Member) -> Cause:
        costs_nothing = isinstance(seen.slurm, Snapshot) and not is_in_use(member)
        if member.pod.metadata.annotations.get(RESOURCES_DIGEST) == wanted:
            return Cause(Leaving.UPDATE, text, costs_nothing)
        return Cause(Leaving.RESOURCES, f"{text}, with other resources", costs_nothing)

    return {member.uid: cause(member) for member in going}


def _away(seen: Seen, choices: Choices, staying: list[Member], now: datetime) -> int:
    """How many of the wanted workers take no job now, whatever the cause."""
    return choices.desired - sum(1 for member in staying if is_serving(member, seen, now))


def _gone_ahead(choices: Choices, staying: list[Member], old: list[Member], leaving: list[Member]) -> int:
    """Workers that are, or are about to be, of the new revision: there, on their way, or not yet created."""
    return len(leaving) + len(staying) - len(old) + max(0, choices.desired - len(staying))


def is_serving(member: Member, seen: Seen, now: datetime) -> bool:
    """It could take a job now, as far as anybody can see."""
    if not member.is_available(now, seen.nodeset.spec.min_ready_seconds):
        return False
    if not isinstance(seen.slurm, Snapshot):
        return True
    # Whom we have just written to may be drained by now, though the last answer says otherwise: without this
    # a second one would be drained beside it as soon as jobs end and the order of victims changes.
    return seen.slurm.is_current(member.slurm_node) and is_in_use(member)


def is_in_use(member: Member) -> bool:
    """Slurm may start jobs there."""
    return member.record is not None and member.record.state.is_available


def is_broken(member: Member, now: datetime) -> bool:
    """Not ready, and Slurm has no use for it either, or has had time to notice.

    When slurmctld restarts, every worker is unready for a moment; that is no reason to replace them all.
    """
    if member.is_ready:
        return False
    since = member.ready_changed_at
    return not is_in_use(member) or since is None or now - since > UNREADY_FOR


def _drains_for_update(member: Member) -> bool:
    """It was chosen in an earlier pass; the drain says so. Nobody is let go half-way."""
    ours = member.drain
    is_update = ours is not None and ours.cause in (Leaving.UPDATE, Leaving.RESOURCES)
    return is_update and member.is_drained_itself


def budget(seen: Seen, desired: int) -> int:
    """How many workers may be away at once; a share is rounded up, and what cannot be read counts as 1."""
    wanted = seen.nodeset.spec.update_strategy.rolling_update.max_unavailable
    if isinstance(wanted, int):
        return max(1, wanted)
    share = wanted.removesuffix("%")
    if not share.isdecimal():
        return 1
    return max(1, math.ceil(desired * int(share) / 100) if wanted.endswith("%") else int(share))
