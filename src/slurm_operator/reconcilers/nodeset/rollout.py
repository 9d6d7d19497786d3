"""Which workers are replaced next because what they are made from has changed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from slurm_operator.api.updates import UpdateType
from slurm_operator.manifests.objects import Pod
from slurm_operator.reconcilers.nodeset import canary
from slurm_operator.reconcilers.nodeset.causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.choices import Choices
from slurm_operator.reconcilers.nodeset.maintenance import in_window
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.mismatches import is_of_another
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.pod import RESOURCES_DIGEST, resources_digest
from slurm_operator.reconcilers.nodeset.revisions import Revision
from slurm_operator.reconcilers.nodeset.victims import victims_first
from slurm_operator.slurm.snapshot import Snapshot


def replaced(seen: Seen, choices: Choices, revision: Revision, now: datetime) -> Mapping[str, Cause]:
    """Workers of an older revision that go now, within the budget: broken ones, a canary, then the rest."""
    strategy = seen.nodeset.spec.update_strategy.effective_type
    if strategy is UpdateType.ON_DELETE or seen.nodeset.metadata.is_terminating:
        return {}
    staying = [m for m in seen.members if m.uid not in choices.leaving and not m.is_terminating]
    old = [member for member in staying if seen.is_former(member)]
    if not old:
        return {}
    broken = [member for member in old if is_broken(member)]
    if strategy is UpdateType.SCHEDULED_UPDATE:
        going = [*broken, *(member for member in old if in_window(member, seen))]
        return _causes(going, seen, revision)
    under_way = [member for member in _without(old, broken) if _drains_for_update(member)]
    in_the_way = _in_the_way(_without(old, [*under_way, *broken]), choices)
    others = _without(old, [*under_way, *broken, *in_the_way])
    # Whoever takes no jobs anyway costs nothing; the rest has to fit beside all who are away already.
    free = [member for member in others if isinstance(seen.slurm, Snapshot) and is_out_of_use(member)]
    going = [*under_way, *broken, *in_the_way]
    costly, room = _without(others, free), _Room.of(seen, choices, staying, now)
    if any(member.is_registered for member in staying if member.revision == revision.hash):
        chosen = [*victims_first(free), *_within_budget(costly, room)]
        return _causes([*going, *chosen], seen, revision)
    # Nobody of the new revision has shown that it works: one goes ahead, the rest wait for it.
    if canary.has_gone_ahead(seen, choices, revision, now) or _makes_room(under_way, broken, seen, now):
        return _causes(going, seen, revision)
    fitting = [*(member for member in costly if room.has_place_for(member)), *free]
    best = canary.best(fitting, {member.uid for member in free}, seen, now)
    if best is None or (under_way and canary.is_held_up(best, now)):
        return _causes(going, seen, revision)  # A second one that waits for jobs is no help.
    return _causes(going, seen, revision) | _causes([best], seen, revision, are_ahead=True)


def _in_the_way(members: list[Member], choices: Choices) -> list[Member]:
    """Who has the name in Slurm that a worker of the new revision is to have, and will itself have another.

    There is no budget for these: as long as they stay, the other one is away.
    """
    holders = {held.by.metadata.uid for held in choices.held if isinstance(held.by, Pod)}
    return [member for member in members if member.uid in holders and member.is_renamed]


def _makes_room(under_way: list[Member], broken: list[Member], seen: Seen, now: datetime) -> bool:
    """One of them is about to go, and a worker of the new revision to start in its place."""
    startable = [member for member in broken if canary.machine_takes_next(member, seen)]
    return any(not canary.is_held_up(member, now) for member in (*under_way, *startable))


def _without(members: list[Member], others: list[Member]) -> list[Member]:
    """By uid: to compare a thousand workers with each other word for word would take long."""
    left_out = {member.uid for member in others}
    return [member for member in members if member.uid not in left_out]


def _causes(
    going: list[Member], seen: Seen, revision: Revision, *, are_ahead: bool = False
) -> dict[str, Cause]:
    """Other resources, or another name of the NodeSet, need another record in Slurm; the drain says so."""
    wanted = resources_digest(seen.nodeset)

    def cause(member: Member) -> Cause:
        is_ahead = are_ahead and canary.machine_takes_next(member, seen)
        text = canary.note(revision) if is_ahead else f"being replaced by revision {revision.hash}"
        costs_nothing = isinstance(seen.slurm, Snapshot) and is_out_of_use(member)
        if member.record is not None and is_of_another(member.record, seen.nodeset):
            return Cause(Leaving.RESOURCES, f"{text}, as {seen.nodeset.slurm_name}", costs_nothing)
        noted = member.pod.metadata.annotations.get(RESOURCES_DIGEST)
        if noted == wanted:
            return Cause(Leaving.UPDATE, text, costs_nothing)
        if noted is None:  # A worker of the operator before us; its record is made again to be safe.
            return Cause(Leaving.RESOURCES, f"{text}, with a new record", costs_nothing)
        return Cause(Leaving.RESOURCES, f"{text}, with other resources", costs_nothing)

    return {member.uid: cause(member) for member in going}


@dataclass
class _Room:
    """How many more may go beside all who take no jobs now, whatever the cause.

    One that is away already takes no room. But all are unready when slurmctld was away, and in use as soon as
    it is back: of those, also when they stay unready, only as many go as Slurm can do without.
    """

    now: datetime
    used: set[str]
    serving: set[str]
    for_serving: int
    for_used: int

    @classmethod
    def of(cls, seen: Seen, choices: Choices, staying: list[Member], now: datetime) -> Self:
        used = {member.uid for member in staying if _is_used(member, seen)}
        serving = {member.uid for member in staying if _is_serving(member, seen, used, now)}
        room = budget(seen, choices.desired) - choices.desired
        return cls(now, used, serving, room + len(serving), room + len(used))

    def has_place_for(self, member: Member) -> bool:
        if member.uid in self.used and is_unready_for_long(member, self.now):
            return self.for_used > 0
        return self.for_serving >= int(member.uid in self.serving)

    def take(self, member: Member) -> None:
        self.for_serving -= int(member.uid in self.serving)
        self.for_used -= int(member.uid in self.used)


def _within_budget(costly: list[Member], room: _Room) -> list[Member]:
    """As many of them as there is room for."""
    if room.for_serving <= 0:  # As nearly always in an update. Who serves is not worth sorting then.
        costly = [member for member in costly if member.uid not in room.serving]
    going: list[Member] = []
    for member in victims_first(costly):
        if room.has_place_for(member):
            going.append(member)
            room.take(member)
    return going


def _is_serving(member: Member, seen: Seen, used: set[str], now: datetime) -> bool:
    """It could take a job now, as far as anybody can see."""
    if isinstance(seen.slurm, Snapshot) and member.uid not in used:
        return False
    return member.is_available(now, seen.nodeset.spec.min_ready_seconds)


def _is_used(member: Member, seen: Seen) -> bool:
    """Slurm may start jobs there, also after what we have written.

    Whom we have just written to may be drained by now, though the last answer says otherwise: without this a
    second one would be drained beside it as soon as jobs end and the order of victims changes.
    """
    slurm = seen.slurm
    return isinstance(slurm, Snapshot) and slurm.is_current(member.slurm_node) and is_in_use(member)


def is_in_use(member: Member) -> bool:
    """Slurm may start jobs there."""
    return member.record is not None and member.record.state.is_available


def is_out_of_use(member: Member) -> bool:
    """Slurm has no use for it: it does not know it, has given it up, or was told to leave it alone.

    One that is merely silent may be back in a moment, as all are right after a restart of slurmctld.
    """
    record = member.record
    if record is None:
        return True
    state = record.state
    return state.is_down or state.is_drain or state.is_failing or state.is_powered_off


def is_broken(member: Member) -> bool:
    """Not ready, and Slurm has no use for it either.

    When slurmctld restarts, every worker is unready for a moment; that is no reason to replace them all.
    """
    return not member.is_ready and is_out_of_use(member)


def is_unready_for_long(member: Member, now: datetime) -> bool:
    return not member.is_ready and member.ready_again_in(now) <= timedelta(0)


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
