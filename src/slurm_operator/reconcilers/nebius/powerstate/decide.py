"""Which numbers should run, by what Slurm waits for; and what becomes of workers that did not start."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.plan.actions import Action, PatchObject, WriteSlurm
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.reconcilers.nebius.powerstate import explanations
from slurm_operator.reconcilers.nebius.powerstate.observe import Seen, Worker
from slurm_operator.reconcilers.nebius.powerstate.wishes import (
    REGISTERS_WITHIN,
    Wish,
    has_failed,
    is_left_down,
    is_left_on,
    wish,
)
from slurm_operator.safety.gate import PROOF_LIFETIME
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import ExplainNodes, PowerNodes, ResumeNodes, SlurmWrite, UpdateJob

_A_SECOND: Final = timedelta(seconds=1)
_NAMED: Final = 5


def decide(seen: Seen, now: datetime) -> Plan:
    if not seen.is_followed or seen.meta.is_terminating:
        return plan()
    wanted, why = wanted_numbers(seen), reasons(seen, now)
    lanes = [lane("active nodes", _active(seen, wanted)), *_explained(seen, why, now), *_notes(seen, why)]
    if not any(one.stages for one in lanes):
        return plan(look_again=_look_again(seen, now), waits_on=_awaited(seen))
    if not isinstance(seen.slurm, Snapshot) or not seen.slurm.is_fresh(now, PROOF_LIFETIME):
        # What Slurm said a while ago may have been answered by power-manager since.
        beyond = lane("active nodes", _active(seen, _within(seen, seen.active)))
        return plan(beyond, look_again=_A_SECOND, waits_on=(seen.slurm_key,))
    return plan(*lanes, look_again=_look_again(seen, now), waits_on=_awaited(seen))


def wanted_numbers(seen: Seen) -> list[int]:
    """Those that are asked for, with what slurmctld still waits for, and without what it has given up."""
    wishes = {worker.ordinal: wish(worker) for worker in seen.workers if _is_known(worker, seen)}
    more = {ordinal for ordinal, one in wishes.items() if one is Wish.UP}
    less = {ordinal for ordinal, one in wishes.items() if one in (Wish.DOWN, Wish.FAILED)}
    return _within(seen, ({*seen.active} | more) - less)


def _within(seen: Seen, numbers: Iterable[int]) -> list[int]:
    """Numbers from `replicas` on have no worker any more; their workers leave when their jobs are done."""
    return sorted({number for number in numbers if 0 <= number < seen.replicas})


def _is_known(worker: Worker, seen: Seen) -> bool:
    """Slurm was read since we last wrote to it."""
    return isinstance(seen.slurm, Snapshot) and seen.slurm.is_current(worker.slurm_node)


def reasons(seen: Seen, now: datetime) -> dict[str, str]:
    """Why workers are not up, by their names in Slurm; only of those that have a reason."""
    found = {worker.slurm_node: explanations.why_not_up(worker, seen, now) for worker in seen.workers}
    return {name: why for name, why in found.items() if why}


def _active(seen: Seen, wanted: list[int]) -> list[Action]:
    there = set(seen.active)
    if there == set(wanted):
        return []
    more, less = sorted({*wanted} - there), sorted(there - {*wanted})
    told = [f"{word} {_few(seen, numbers)}" for word, numbers in (("on", more), ("off", less)) if numbers]
    return [
        PatchObject(
            kind=NodeSetPowerState.KIND,
            key=key_of(seen.power),
            uid=seen.meta.uid,
            operations=(
                {"op": "test", "path": "/metadata/resourceVersion", "value": seen.meta.resource_version},
                {"op": "add", "path": "/spec/activeNodes", "value": wanted},
            ),
            reason=Reason.SWITCHED,
            message=f"switched {' and '.join(told)}, by what Slurm and spec.replicas of the NodeSet say",
        )
    ]


def _few(seen: Seen, numbers: list[int]) -> str:
    return first_few([f"{seen.name}-{number}" for number in numbers], _NAMED)


def _explained(seen: Seen, why: Mapping[str, str], now: datetime) -> Iterator[Lane]:
    """A worker that did not start says why; after a rest it is back among those that a job can wake."""
    for worker in seen.workers:
        record = worker.record
        if record is None or not _is_known(worker, seen):
            continue
        name = worker.slurm_node
        if has_failed(record) and wish(worker) is Wish.FAILED and not record.reason.startswith(_OURS):
            reason = explanations.failure_reason(why.get(name, ""))
            write = ExplainNodes(nodes=(name,), reason=reason, over=frozenset({record.reason}))
            yield _slurm(
                seen, name, write, Reason.POWER_UP_FAILED, f"{name} did not start: {why.get(name, '')}"
            )
        elif is_left_down(worker) and explanations.rests_for(worker, seen, now) <= timedelta(0):
            write_ = ResumeNodes(nodes=(name,), over=frozenset({record.reason}), from_down=True)
            yield _slurm(
                seen, name, write_, Reason.RESUMED, f"{name} is switched off, and jobs may wake it again"
            )
        elif is_left_on(worker):
            off = PowerNodes(nodes=(name,), up=False)
            yield _slurm(
                seen, name, off, Reason.POWERED_DOWN, f"{name} has no worker and is switched off in Slurm"
            )


_OURS: Final = explanations.failure_reason("")


def _slurm(seen: Seen, name: str, write: SlurmWrite, reason: Reason, message: str) -> Lane:
    return lane(name, [WriteSlurm(controller=seen.slurm_key, write=write, reason=reason, message=message)])


def _notes(seen: Seen, why: Mapping[str, str]) -> Iterator[Lane]:
    for job, comment in explanations.notes(seen, why):
        write = UpdateJob(job_id=job.job_id, admin_comment=comment)
        message = f"told job {job.job_id} which of its nodes does not start, and why"
        note = WriteSlurm(controller=seen.slurm_key, write=write, reason=Reason.JOB_TOLD, message=message)
        yield lane(f"job {job.job_id}", [note], is_note=True)


def _awaited(seen: Seen) -> tuple[ObjectKey, ...]:
    """While workers start or stop, Slurm is read often: it may have another wish in the next moment."""
    is_moving = any(wish(worker) is not Wish.NONE for worker in seen.workers)
    return (seen.slurm_key,) if is_moving else ()


def _may_be_off(worker: Worker) -> bool:
    """It is ready, and switched off for Slurm: either it registers in a moment, or it was off before."""
    return worker.record is not None and worker.record.state.is_powered_off and bool(worker.ready_for)


def _look_again(seen: Seen, now: datetime) -> timedelta | None:
    waits = [explanations.rests_for(one, seen, now) for one in seen.workers if is_left_down(one)]
    waits += [wait for one in seen.workers if (wait := explanations.told_in(one, now)) is not None]
    waits += [REGISTERS_WITHIN - one.ready_for for one in seen.workers if _may_be_off(one)]
    soonest = min((wait for wait in waits if wait > timedelta(0)), default=None)
    return max(soonest, _A_SECOND) if soonest is not None else None
