"""What Slurm's power saving wants of a worker, by the record that slurmctld keeps of it.

slurmctld calls a program for each wish, once. Whatever becomes of that call, its record still says what it
waits for. So a call that got lost while the API server, the operator or a pod was away is made up for.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from slurm_operator.conditions import Reason
from slurm_operator.reconcilers.nebius.powerstate.observe import Worker
from slurm_operator.safety.gate import is_record_of
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import OurReason, given_up_for
from slurm_operator.slurm.states import NodeBase, NodeFlag

# The cause in a reason of ours that says why a worker did not start.
FAILED_CAUSE: Final = Reason.POWER_UP_FAILED
_TIMED_OUT: Final = "ResumeTimeout reached"

# A slurmd that is ready registers within seconds.
REGISTERS_WITHIN: Final = timedelta(minutes=2)

_UP: Final = frozenset({NodeFlag.POWERING_UP, NodeFlag.POWER_UP})
_GIVEN: Final = frozenset({NodeBase.ALLOCATED, NodeBase.MIXED})


class Wish(StrEnum):
    UP = "Up"  # slurmctld waits for its slurmd.
    DOWN = "Down"  # It was up, and slurmctld has switched it off, or is about to.
    FAILED = "Failed"  # It did not start in time.
    NONE = "None"  # As it is, it is right, or nobody can tell.


def wish(worker: Worker) -> Wish:
    record = worker.record
    if record is None:
        return Wish.NONE
    if is_powering_up(record):
        return Wish.UP
    if not record.state.is_powered_off:
        return Wish.NONE
    if has_failed(record):
        return Wish.NONE if _is_another_try(worker, record) else Wish.FAILED
    return Wish.DOWN if _was_up(worker, record) else Wish.NONE


def _was_up(worker: Worker, record: SlurmNode) -> bool:
    """Its slurmd has registered. A pod that starts now finds its record switched off until then.

    slurmctld may have forgotten who registered there; but nobody is ready for long without having done so.
    """
    is_registered = worker.pod is not None and is_record_of(record, worker.pod)
    return is_registered or worker.ready_for >= REGISTERS_WITHIN


def is_powering_up(record: SlurmNode) -> bool:
    """slurmctld waits for its slurmd.

    While it has no programs to call, it gives jobs to nodes that are off, and does not call that powering up.
    """
    words = record.state.words
    has_job = NodeFlag.POWERED_DOWN in words and not words.isdisjoint(_GIVEN)
    return (has_job or not words.isdisjoint(_UP)) and not record.state.is_down


def has_failed(record: SlurmNode) -> bool:
    """slurmctld gave it up because no slurmd came, and nothing else was said of it since."""
    ours = OurReason.read(record.reason)
    is_ours = ours is not None and ours.cause == FAILED_CAUSE
    return record.state.is_down and (is_ours or given_up_for(record.reason) == _TIMED_OUT)


def _is_another_try(worker: Worker, record: SlurmNode) -> bool:
    """Somebody asked for it again since: its pod is newer than the failure."""
    made_at = worker.pod.metadata.creation_timestamp if worker.pod is not None else None
    failed_at = record.reason_changed_at
    return made_at is not None and failed_at is not None and made_at > failed_at


def is_left_on(worker: Worker) -> bool:
    """Nobody wants it and it has no pod, but slurmctld has not switched it off: it would send jobs there."""
    record = worker.record
    if record is None or worker.is_active or worker.pod is not None or is_powering_up(record):
        return False
    is_going_off = NodeFlag.POWER_DOWN in record.state.words
    return not (record.state.is_powered_off or record.state.is_busy or is_going_off or is_held(record))


def is_left_down(worker: Worker) -> bool:
    """It is switched off, and down as well: no job wakes it before somebody resumes it."""
    record = worker.record
    if record is None or worker.is_active or worker.pod is not None:
        return False
    is_off = NodeFlag.POWERED_DOWN in record.state.words
    return is_off and record.state.is_down and not record.state.is_drain and not is_held(record)


def is_held(record: SlurmNode) -> bool:
    """Somebody else had a word about it, drained or down. Without a reason a node that is down is theirs."""
    if record.is_drained_by_people:
        return True
    is_said = bool(record.reason) or record.state.is_down
    is_nobodys = OurReason.read(record.reason) is not None or record.is_marked_by_slurm
    return is_said and not is_nobodys
