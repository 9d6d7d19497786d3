"""The maintenance reservation of a scheduled update: a window that Slurm keeps free of new jobs."""

from datetime import datetime

from slurm_operator.api.nodeset_status import ReservationStatus
from slurm_operator.api.updates import ScheduledUpdate, UpdateType
from slurm_operator.plan.actions import Action, WriteSlurm
from slurm_operator.plan.conditions import Condition, false, true
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import Reserve, Unreserve

CREATED = "ReservationCreated"

OURS = ("MAINT", "IGNORE_JOBS")
RECURRING = {"HOURLY", "DAILY", "WEEKLY", "WEEKDAY", "WEEKEND"}
FORCE_START = "FORCE_START"  # Taken by slurmctld, and never shown again.
USERS = ("slurm",)


def schedule(seen: Seen) -> ScheduledUpdate | None:
    """What is asked for; None when no window is wanted, or nobody would be in it."""
    strategy, is_empty = (
        seen.nodeset.spec.update_strategy,
        not seen.is_daemon and not seen.nodeset.spec.replicas,
    )
    is_scheduled = strategy.effective_type is UpdateType.SCHEDULED_UPDATE
    if not is_scheduled or is_empty or seen.nodeset.metadata.is_terminating:
        return None
    wanted = strategy.scheduled_update
    return wanted if wanted is not None and wanted.start_time is not None else None


def in_window(member: Member, seen: Seen) -> bool:
    """Our window is open for this worker: Slurm starts nothing there, so it may be replaced."""
    record = member.record
    return (
        record is not None and record.state.is_in_maintenance and record.reservation == seen.reservation_name
    )


def arranged(seen: Seen, now: datetime) -> list[Action]:
    """The step that the reservation needs now. Without an answer from Slurm there is none."""
    if not isinstance(seen.slurm, Snapshot):
        return []
    there, wanted = seen.slurm.reservations.get(seen.reservation_name), schedule(seen)
    if wanted is None:
        return [_removal(seen)] if there is not None else []
    nodes = tuple(sorted(member.slurm_node for member in seen.members if member.is_registered))
    if not nodes:
        return []
    if there is None:
        return [_reserve(seen, wanted, nodes)] if _may_be_made(seen, wanted, now) else []
    if there.is_active(now):
        is_same = set(there.nodes) == set(nodes)
        return [] if is_same else [_changed(seen, wanted, nodes, is_active=True)]
    if set(there.nodes) == set(nodes) and _is_as_asked(there, seen, wanted, now):
        return []
    if _has_moved(there, seen, wanted, now):
        return [_reserve(seen, wanted, nodes)]
    return [_changed(seen, wanted, nodes, is_active=False)]


def _may_be_made(seen: Seen, wanted: ScheduledUpdate, now: datetime) -> bool:
    """A window that has been is not made again: only one that lies ahead, or is to start at once, once."""
    assert wanted.start_time is not None
    was_made = _memory(seen).requested_start == wanted.start_time
    return wanted.start_time > now or (FORCE_START in _flags(wanted) and not was_made)


def _is_as_asked(there: Reservation, seen: Seen, wanted: ScheduledUpdate, now: datetime) -> bool:
    missing = set(_flags(wanted)) - there.flags - {FORCE_START}
    return not missing and set(there.users) == set(USERS) and not _has_moved(there, seen, wanted, now)


def _has_moved(there: Reservation, seen: Seen, wanted: ScheduledUpdate, now: datetime) -> bool:
    """The spec asks for another time. Slurm itself moves one that recurs on to its next time; that stands."""
    assert wanted.start_time is not None
    if wanted.start_time <= now:
        return False
    if RECURRING & set(_flags(wanted)):
        return _memory(seen).requested_start not in (None, wanted.start_time)
    ends = there.start_time + wanted.duration if there.start_time is not None else None
    return there.start_time != wanted.start_time or there.end_time != ends


def _memory(seen: Seen) -> ReservationStatus:
    return seen.nodeset.status.reservation or ReservationStatus()


def _flags(wanted: ScheduledUpdate) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*OURS, *(flag.strip().upper() for flag in wanted.flags if flag.strip())]))


def _reserve(seen: Seen, wanted: ScheduledUpdate, nodes: tuple[str, ...]) -> WriteSlurm:
    write = Reserve(
        name=seen.reservation_name,
        nodes=nodes,
        start_time=wanted.start_time,
        duration=wanted.duration,
        users=USERS,
        flags=_flags(wanted),
    )
    message = f"reserved {len(nodes)} Slurm nodes for maintenance at {wanted.start_time:%Y-%m-%d %H:%M} UTC"
    return WriteSlurm(controller=seen.controller_key, write=write, reason="Reserved", message=message)


def _changed(seen: Seen, wanted: ScheduledUpdate, nodes: tuple[str, ...], *, is_active: bool) -> WriteSlurm:
    """Its times stay. Of one that is under way only the nodes can change."""
    flags = tuple(flag for flag in _flags(wanted) if flag != FORCE_START)
    write = Reserve(
        name=seen.reservation_name,
        nodes=nodes,
        start_time=None,
        duration=None,
        users=() if is_active else USERS,
        flags=() if is_active else flags,
    )
    message = f"the maintenance reservation {seen.reservation_name} is for {len(nodes)} Slurm nodes now"
    return WriteSlurm(controller=seen.controller_key, write=write, reason="Reserved", message=message)


def _removal(seen: Seen) -> WriteSlurm:
    return WriteSlurm(
        controller=seen.controller_key,
        write=Unreserve(name=seen.reservation_name),
        reason="Unreserved",
        message=f"removed the maintenance reservation {seen.reservation_name}: it is no longer asked for",
    )


def remembered(seen: Seen, outcome: Outcome) -> ReservationStatus | None:
    """What the status says of the window, and the one thing that is written nowhere else: for which wish it
    was made. That stays when the window is over, so that it is not made again.
    """
    wanted = schedule(seen)
    if wanted is None:
        return None
    there = seen.slurm.reservations.get(seen.reservation_name) if isinstance(seen.slurm, Snapshot) else None
    writes = [action.write for action in outcome.done if isinstance(action, WriteSlurm)]
    is_made = any(isinstance(write, Reserve) and write.start_time is not None for write in writes)
    before = _memory(seen).requested_start
    requested = wanted.start_time if is_made or (there is not None and before is None) else before
    return ReservationStatus(
        name=seen.reservation_name,
        requested_start=requested,
        start_time=there.start_time if there is not None else None,
        end_time=there.end_time if there is not None else None,
        active=there is not None and there.is_active(seen.now),
    )


def condition(seen: Seen) -> Condition | None:
    """Whether there is a window; absent when none is asked for, and unchanged while nobody can tell."""
    if schedule(seen) is None:
        return None
    if not isinstance(seen.slurm, Snapshot):
        return next((c for c in seen.nodeset.status.conditions if c.type == CREATED), None)
    there = seen.slurm.reservations.get(seen.reservation_name)
    if there is None:
        return false(CREATED, "NotExists", f"There is no reservation {seen.reservation_name} in Slurm.")
    return true(CREATED, "Created", f"Slurm keeps {len(there.nodes)} nodes free in {there.name}.")
