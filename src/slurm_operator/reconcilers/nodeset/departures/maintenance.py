"""The maintenance reservation of a scheduled update: a window that Slurm keeps free of new jobs."""

from datetime import datetime, timedelta

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset_status import ReservationStatus
from slurm_operator.api.slinky.nodeset_updates import ScheduledUpdate, UpdateType
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Action, WriteSlurm
from slurm_operator.plan.conditions import Condition, false, true
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import Reserve, Unreserve

CREATED = "ReservationCreated"

OURS = ("MAINT", "IGNORE_JOBS")
A_MINUTE, A_DAY = timedelta(minutes=1), timedelta(days=1)
LASTS = timedelta(minutes=30)  # Where nothing is said about it.

# How far it is from one time to the next; for the last two only some days count.
RECURRING = {
    "HOURLY": timedelta(hours=1),
    "DAILY": A_DAY,
    "WEEKLY": timedelta(weeks=1),
    "WEEKDAY": A_DAY,
    "WEEKEND": A_DAY,
}
SATURDAY = 5
FORCE_START = "FORCE_START"


def schedule(seen: Seen) -> ScheduledUpdate | None:
    """What is asked for, as Slurm counts: starts in seconds, lengths in minutes.

    None when no window is wanted, or nobody would be in it.
    """
    strategy, is_empty = (
        seen.nodeset.spec.update_strategy,
        not seen.is_daemon and not seen.nodeset.spec.numbers,
    )
    is_scheduled = strategy.effective_type is UpdateType.SCHEDULED_UPDATE
    if not is_scheduled or is_empty or seen.nodeset.metadata.is_terminating:
        return None
    wanted = strategy.scheduled_update
    if wanted is None or wanted.start_time is None:
        return None
    lasts = wanted.duration // A_MINUTE * A_MINUTE
    return wire.replace(wanted, start_time=wanted.start_time.replace(microsecond=0), duration=lasts or LASTS)


def in_window(worker: Worker, seen: Seen) -> bool:
    """Our window is open for this worker: Slurm starts nothing there, so it may be replaced."""
    record = worker.record
    return (
        record is not None and record.state.is_in_maintenance and record.reservation == seen.reservation_name
    )


def reservation_actions(seen: Seen, now: datetime) -> list[Action]:
    """The step that the reservation needs now. Without an answer from Slurm there is none."""
    if not isinstance(seen.slurm, Snapshot):
        return []
    there, wanted = seen.slurm.reservations.get(seen.reservation_name), schedule(seen)
    if wanted is None:
        return [_removal(seen)] if there is not None else []
    nodes = tuple(sorted(worker.slurm_node for worker in seen.workers if worker.is_registered))
    if not nodes:
        return []
    if there is None:
        return [_reserve(seen, wanted, nodes, now)] if _may_be_made(seen, wanted, now) else []
    if there.is_active(now):
        is_same = set(there.nodes) == set(nodes)
        return [] if is_same else [_changed(seen, wanted, nodes, there, is_active=True)]
    is_over = there.end_time is not None and there.end_time <= now  # Slurm removes it, or moves it on.
    if is_over or (set(there.nodes) == set(nodes) and _is_as_asked(there, seen, wanted, now)):
        return []
    if _has_moved(there, seen, wanted, now) and not _former_recurrences(there, wanted):
        return [_reserve(seen, wanted, nodes, now)]
    return [_changed(seen, wanted, nodes, there, is_active=False)]


def _may_be_made(seen: Seen, wanted: ScheduledUpdate, now: datetime) -> bool:
    """A window that has been is not made again: only one that lies ahead, or is to start at once, once."""
    was_made = _memory(seen).requested_start == wanted.start_time
    return _start(seen, wanted, now) > now or (FORCE_START in _flags(wanted) and not was_made)


def _start(seen: Seen, wanted: ScheduledUpdate, now: datetime) -> datetime:
    """When it starts next. slurmctld makes none in the past, also of those that recur.

    One that is to start at once begins where it says, the first time.
    """
    start, flags = wanted.start_time, _flags(wanted)
    assert start is not None
    step = next((RECURRING[flag] for flag in flags if flag in RECURRING), None)
    is_forced = FORCE_START in flags and _memory(seen).requested_start != start
    if step is None or is_forced or start > now:
        return start
    start += ((now - start) // step + 1) * step
    while not _is_a_day_for_it(start, flags):
        start += step
    return start


def _is_a_day_for_it(start: datetime, flags: tuple[str, ...]) -> bool:
    is_weekend = start.weekday() >= SATURDAY
    return not (is_weekend and "WEEKDAY" in flags) and not (not is_weekend and "WEEKEND" in flags)


def _is_as_asked(there: Reservation, seen: Seen, wanted: ScheduledUpdate, now: datetime) -> bool:
    missing = set(_flags(wanted)) - there.flags - {FORCE_START}
    is_for_us = set(there.users) == set(_users(seen))
    is_right = is_for_us and not missing and not _former_recurrences(there, wanted)
    return is_right and _lasts_as_asked(there, wanted) and not _has_moved(there, seen, wanted, now)


def _former_recurrences(there: Reservation, wanted: ScheduledUpdate) -> list[str]:
    """By which flags it still recurs, though they are no longer asked for."""
    return sorted((there.flags & RECURRING.keys()) - set(_flags(wanted)))


def _lasts_as_asked(there: Reservation, wanted: ScheduledUpdate) -> bool:
    if there.start_time is None or there.end_time is None:
        return False
    return there.end_time - there.start_time == wanted.duration


def _has_moved(there: Reservation, seen: Seen, wanted: ScheduledUpdate, now: datetime) -> bool:
    """The spec asks for another time. Slurm itself moves one that recurs on to its next time; that stands."""
    assert wanted.start_time is not None
    if RECURRING.keys() & set(_flags(wanted)):
        return _memory(seen).requested_start not in (None, wanted.start_time)
    return wanted.start_time > now and there.start_time != wanted.start_time


def _memory(seen: Seen) -> ReservationStatus:
    return seen.nodeset.status.reservation or ReservationStatus()


def _users(seen: Seen) -> tuple[str, ...]:
    """Who may use what is reserved: Slurm's own user, as no job is to run there."""
    return (seen.controller.user.name if seen.controller is not None else names.SLURM_USER,)


def _flags(wanted: ScheduledUpdate) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*OURS, *(flag.strip().upper() for flag in wanted.flags if flag.strip())]))


def _reserve(seen: Seen, wanted: ScheduledUpdate, nodes: tuple[str, ...], now: datetime) -> WriteSlurm:
    start, flags = _start(seen, wanted, now), _flags(wanted)
    is_moved_on = start != wanted.start_time
    write = Reserve(
        name=seen.reservation_name,
        nodes=nodes,
        start_time=start,
        duration=wanted.duration,
        users=_users(seen),
        flags=tuple(flag for flag in flags if not (is_moved_on and flag == FORCE_START)),
    )
    message = f"reserved {len(nodes)} Slurm nodes for maintenance at {start:%Y-%m-%d %H:%M} UTC"
    return WriteSlurm(controller=seen.controller_key, write=write, reason=Reason.RESERVED, message=message)


def _changed(
    seen: Seen, wanted: ScheduledUpdate, nodes: tuple[str, ...], there: Reservation, *, is_active: bool
) -> WriteSlurm:
    """Its start stays. Of one that is under way only the nodes can change.

    slurmctld takes no second flag by which it would recur. So the previous one is taken off first, and
    the new one is missing then.
    """
    former = _former_recurrences(there, wanted)
    kept = (flag for flag in _flags(wanted) if flag != FORCE_START and not (former and flag in RECURRING))
    write = Reserve(
        name=seen.reservation_name,
        nodes=nodes,
        start_time=None,
        duration=None if is_active or _lasts_as_asked(there, wanted) else wanted.duration,
        users=() if is_active else _users(seen),
        flags=() if is_active else (*kept, *(f"NO_{flag}" for flag in former)),
    )
    message = f"the maintenance reservation {seen.reservation_name} is for {len(nodes)} Slurm nodes now"
    return WriteSlurm(controller=seen.controller_key, write=write, reason=Reason.RESERVED, message=message)


def _removal(seen: Seen) -> WriteSlurm:
    return WriteSlurm(
        controller=seen.controller_key,
        write=Unreserve(name=seen.reservation_name),
        reason=Reason.UNRESERVED,
        message=f"removed the maintenance reservation {seen.reservation_name}: it is no longer asked for",
    )


def remembered(seen: Seen, outcome: Outcome) -> ReservationStatus | None:
    """What the status says of the window, and the one thing that is written nowhere else: for which wish it
    was made. That stays when the window is over, so that it is not made again.
    """
    wanted = schedule(seen)
    if wanted is None:
        return None
    memory, there = _memory(seen), _window(seen)
    writes = [action.write for action in outcome.done if isinstance(action, WriteSlurm)]
    is_made = any(isinstance(write, Reserve) and write.start_time is not None for write in writes)
    before = memory.requested_start
    requested = wanted.start_time if is_made or (there is not None and before is None) else before
    return ReservationStatus(
        name=seen.reservation_name,
        requested_start=requested,
        start_time=there.start_time if there is not None else None,
        end_time=there.end_time if there is not None else None,
        active=there is not None and there.is_active(seen.now),
    )


def _window(seen: Seen) -> Reservation | None:
    """The reservation that is there; while Slurm is silent, its times as last known."""
    if isinstance(seen.slurm, Snapshot):
        return seen.slurm.reservations.get(seen.reservation_name)
    told = _memory(seen)
    if told.start_time is None:
        return None
    return Reservation(name=seen.reservation_name, start_time=told.start_time, end_time=told.end_time)


def condition(seen: Seen) -> Condition | None:
    """Whether there is a window; absent when none is asked for, and unchanged while nobody can tell."""
    if schedule(seen) is None:
        return None
    if not isinstance(seen.slurm, Snapshot):
        return next((c for c in seen.nodeset.status.conditions if c.type == CREATED), None)
    there = seen.slurm.reservations.get(seen.reservation_name)
    if there is None:
        absent = f"There is no reservation {seen.reservation_name} in Slurm."
        return false(CREATED, Reason.NOT_EXISTS, f"{absent} {_over(seen)}".strip())
    return true(CREATED, Reason.CREATED, f"Slurm keeps {len(there.nodes)} nodes free in {there.name}.")


def is_open(seen: Seen) -> bool:
    """The window is under way, as far as is known."""
    window = remembered(seen, Outcome())
    return window is not None and window.active


def awaits_window(seen: Seen) -> str:
    """What workers of a previous revision wait for."""
    if over := _over(seen):
        return over
    window, wanted = remembered(seen, Outcome()), schedule(seen)
    start = window.start_time if window is not None else None
    if start is None and wanted is not None:
        start = _start(seen, wanted, seen.now)
    when = f" at {start:%Y-%m-%d %H:%M} UTC" if start is not None and start > seen.now else ""
    return f"{len(seen.former)} workers have a previous revision. They are replaced in the next window{when}."


def _over(seen: Seen) -> str:
    """That no window comes any more, and what can be done about it; empty while one may come."""
    wanted = schedule(seen)
    if wanted is None or not isinstance(seen.slurm, Snapshot):
        return ""
    if seen.reservation_name in seen.slurm.reservations or _may_be_made(seen, wanted, seen.now):
        return ""
    over = f"updateStrategy.scheduledUpdate.startTime, {wanted.start_time:%Y-%m-%d %H:%M} UTC, is over"
    if not seen.former:
        return f"{over}; no worker waits for another window."
    return (
        f"{over}, and {len(seen.former)} workers of a previous revision wait. Set it to a later time, or "
        "add a flag such as WEEKLY, and they are replaced in that window; with updateStrategy.type "
        "RollingUpdate they are replaced at once."
    )
