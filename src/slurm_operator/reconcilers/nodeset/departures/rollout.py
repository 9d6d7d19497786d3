"""Which workers are replaced next because what they are made from has changed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from slurm_operator.api.slinky.nodeset_updates import UpdateType
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.step import Step, look
from slurm_operator.reconcilers.nodeset.creation.pod import RESOURCES_DIGEST, resources_digest
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from slurm_operator.reconcilers.nodeset.departures import canary
from slurm_operator.reconcilers.nodeset.departures.maintenance import in_window
from slurm_operator.reconcilers.nodeset.departures.replica_plan import Choices
from slurm_operator.reconcilers.nodeset.departures.scale_in_order import victims_first
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records.registration_check import is_of_another
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.wire_words import being_replaced


def replaced(seen: Seen, choices: Choices, revision: Revision, now: datetime) -> Mapping[str, Cause]:
    """Workers of an older revision that go now, within the budget: broken ones, a canary, then the rest."""
    strategy = seen.nodeset.spec.update_strategy.effective_type
    if strategy is UpdateType.ON_DELETE or seen.nodeset.metadata.is_terminating:
        return {}
    staying = [m for m in seen.workers if m.uid not in choices.leaving and not m.is_terminating]
    old = [worker for worker in staying if seen.is_former(worker)]
    if not old:
        return {}
    broken = [worker for worker in old if is_broken(worker)]
    if strategy is UpdateType.SCHEDULED_UPDATE:
        going = [*broken, *(worker for worker in old if in_window(worker, seen))]
        return _causes(going, seen, revision)
    under_way = [worker for worker in _without(old, broken) if _drains_for_update(worker)]
    in_the_way = _in_the_way(_without(old, [*under_way, *broken]), choices)
    others = _without(old, [*under_way, *broken, *in_the_way])
    # Whoever takes no jobs anyway costs nothing; the rest has to fit beside all who are away already.
    free = [worker for worker in others if isinstance(seen.slurm, Snapshot) and is_out_of_use(worker)]
    going = [*under_way, *broken, *in_the_way]
    costly, room = _without(others, free), _Room.of(seen, choices, staying, now)
    if any(worker.is_registered for worker in staying if worker.revision == revision.hash):
        chosen = [*victims_first(free), *_within_budget(costly, room)]
        return _causes([*going, *chosen], seen, revision)
    # Nobody of the new revision has shown that it works: one goes ahead, the rest wait for it.
    if canary.has_gone_ahead(seen, choices, revision, now) or _makes_room(under_way, broken, seen, now):
        return _causes(going, seen, revision)
    fitting = [*(worker for worker in costly if room.has_place_for(worker)), *free]
    best = canary.best(fitting, {worker.uid for worker in free}, seen, now)
    if best is None or (under_way and canary.is_held_up(best, now)):
        return _causes(going, seen, revision)  # A second one that waits for jobs is no help.
    return _causes(going, seen, revision) | _causes([best], seen, revision, are_ahead=True)


def look_again(seen: Seen, now: datetime) -> Step:
    """A worker is ready, but not for long enough; or an update judges it again though it has not changed."""
    least = timedelta(seconds=seen.nodeset.spec.min_ready_seconds)
    ready = (worker.ready_changed_at for worker in seen.workers if worker.is_ready) if least else ()
    available = [since + least - now for since in ready if since is not None]
    if all(worker.revision == seen.revision.hash for worker in seen.workers):
        return look(available)
    judged = (wait for worker in seen.workers for wait in canary.times_until_reassessed(worker, now))
    return look([*available, *judged])


def _in_the_way(workers: list[Worker], choices: Choices) -> list[Worker]:
    """Who has the name in Slurm that a worker of the new revision is to have, and will itself have another.

    There is no budget for these: as long as they stay, the other one is away.
    """
    holders = {held.by.metadata.uid for held in choices.held if isinstance(held.by, Pod)}
    return [worker for worker in workers if worker.uid in holders and worker.is_renamed]


def _makes_room(under_way: list[Worker], broken: list[Worker], seen: Seen, now: datetime) -> bool:
    """One of them is about to go, and a worker of the new revision to start in its place."""
    startable = [worker for worker in broken if canary.machine_takes_next(worker, seen)]
    return any(not canary.is_held_up(worker, now) for worker in (*under_way, *startable))


def _without(workers: list[Worker], others: list[Worker]) -> list[Worker]:
    """By uid: to compare a thousand workers with each other word for word would take long."""
    left_out = {worker.uid for worker in others}
    return [worker for worker in workers if worker.uid not in left_out]


def _causes(
    going: list[Worker], seen: Seen, revision: Revision, *, are_ahead: bool = False
) -> dict[str, Cause]:
    """Other resources, or another name of the NodeSet, need another record in Slurm; the drain says so."""
    wanted = resources_digest(seen.nodeset)

    def cause(worker: Worker) -> Cause:
        is_ahead = are_ahead and canary.machine_takes_next(worker, seen)
        text = canary.note(revision) if is_ahead else being_replaced(revision.hash)
        costs_nothing = isinstance(seen.slurm, Snapshot) and is_out_of_use(worker)
        if worker.record is not None and is_of_another(worker.record, seen.nodeset):
            return Cause(Leaving.RESOURCES, f"{text}, as {seen.nodeset.slurm_name}", costs_nothing)
        noted = worker.pod.metadata.annotations.get(RESOURCES_DIGEST)
        if noted == wanted:
            return Cause(Leaving.UPDATE, text, costs_nothing)
        if noted is None:  # A worker of the operator before us; its record is made again to be safe.
            return Cause(Leaving.RESOURCES, f"{text}, with a new record", costs_nothing)
        return Cause(Leaving.RESOURCES, f"{text}, with other resources", costs_nothing)

    return {worker.uid: cause(worker) for worker in going}


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
    def of(cls, seen: Seen, choices: Choices, staying: list[Worker], now: datetime) -> Self:
        used = {worker.uid for worker in staying if _is_used(worker, seen)}
        serving = {worker.uid for worker in staying if _is_serving(worker, seen, used, now)}
        room = budget(seen, choices.desired) - choices.desired
        return cls(now, used, serving, room + len(serving), room + len(used))

    def has_place_for(self, worker: Worker) -> bool:
        if worker.uid in self.used and is_unready_for_long(worker, self.now):
            return self.for_used > 0
        return self.for_serving >= int(worker.uid in self.serving)

    def take(self, worker: Worker) -> None:
        self.for_serving -= int(worker.uid in self.serving)
        self.for_used -= int(worker.uid in self.used)


def _within_budget(costly: list[Worker], room: _Room) -> list[Worker]:
    """As many of them as there is room for."""
    if room.for_serving <= 0:  # As nearly always in an update. Who serves is not worth sorting then.
        costly = [worker for worker in costly if worker.uid not in room.serving]
    going: list[Worker] = []
    for worker in victims_first(costly):
        if room.has_place_for(worker):
            going.append(worker)
            room.take(worker)
    return going


def _is_serving(worker: Worker, seen: Seen, used: set[str], now: datetime) -> bool:
    """It could take a job now, as far as anybody can see."""
    if isinstance(seen.slurm, Snapshot) and worker.uid not in used:
        return False
    return worker.is_available(now, seen.nodeset.spec.min_ready_seconds)


def _is_used(worker: Worker, seen: Seen) -> bool:
    """Slurm may start jobs there, also after what we have written.

    Whom we have just written to may be drained by now, though the last answer says otherwise: without this a
    second one would be drained beside it as soon as jobs end and the order of victims changes.
    """
    slurm = seen.slurm
    return isinstance(slurm, Snapshot) and slurm.is_current(worker.slurm_node) and is_in_use(worker)


def is_in_use(worker: Worker) -> bool:
    """Slurm may start jobs there."""
    return worker.record is not None and worker.record.state.is_available


def is_out_of_use(worker: Worker) -> bool:
    """Slurm has no use for it: it does not know it, has given it up, or was told to leave it alone.

    One that is merely silent may be back in a moment, as all are right after a restart of slurmctld. So may
    one of which slurmctld has forgotten when it started, as of all at each reconfigure: jobs may run there.
    """
    record = worker.known_record
    if record is None:
        return True
    state = record.state
    return state.is_down or state.is_drain or state.is_failing or state.is_powered_off


def is_broken(worker: Worker) -> bool:
    """Not ready, and Slurm has no use for it either.

    When slurmctld restarts, every worker is unready for a moment; that is no reason to replace them all.
    """
    return not worker.is_ready and is_out_of_use(worker)


def is_unready_for_long(worker: Worker, now: datetime) -> bool:
    return not worker.is_ready and worker.ready_again_in(now) <= timedelta(0)


def _drains_for_update(worker: Worker) -> bool:
    """It was chosen in an earlier pass; the drain says so. Nobody is let go half-way."""
    ours = worker.drain
    is_update = ours is not None and ours.cause in (Leaving.UPDATE, Leaving.RESOURCES)
    return is_update and worker.is_drained_itself


def budget(seen: Seen, desired: int) -> int:
    """How many workers may be away at once; a share is rounded up, and what cannot be read counts as 1."""
    wanted = seen.nodeset.spec.update_strategy.rolling_update.max_unavailable
    if isinstance(wanted, int):
        return max(1, wanted)
    share = wanted.removesuffix("%")
    if not share.isdecimal():
        return 1
    return max(1, math.ceil(desired * int(share) / 100) if wanted.endswith("%") else int(share))
