"""Workers that come back to a record which Slurm has given up: it gets no jobs until somebody resumes it.

A lost worker makes its record DOWN. Unless slurm.conf says ReturnToService=2 it stays so when the next slurmd
registers, until somebody resumes it. What slurmctld noted about the worker before is over with that worker.
"""

from datetime import timedelta

from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm import wire_words
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import (
    REBOOTED,
    OurReason,
    given_up_for,
    is_node_controllers_drain,
    is_our_reason,
)

# The one before may be given up while this one starts. It is too new by then to have been silent for long.
STARTS_WITHIN = timedelta(seconds=10)


def comes_back(worker: Worker) -> bool:
    """Slurm keeps it DOWN for something that was before its slurmd, and no human has a say in that."""
    record = worker.record
    if record is None or not record.state.is_down or record.state.is_unresponsive:
        return False
    return _is_nobodys_word(record) and _was_before(worker, record)


def _is_nobodys_word(record: SlurmNode) -> bool:
    """slurmctld's own, or beside a drain of ours. An empty reason is somebody's: slurmctld gives one.

    What a node controller drained for is its own to lift. When it has, only DOWN and its words are left.
    """
    if record.is_drained_by_people:
        return False
    if not record.state.is_drain and is_node_controllers_drain(record.reason, record.reason_set_by):
        return True
    return is_our_reason(record.reason) or record.is_marked_by_slurm


def drain_text(worker: Worker, text: str) -> str:
    """The text of a drain. Who comes back to a record that drains is to be known by it when that is over."""
    return wire_words.was_down(text) if comes_back(worker) else text


def _was_before(worker: Worker, record: SlurmNode) -> bool:
    """A reboot is noticed by the first slurmd after it, so that one is always about the time before."""
    slurmd, changed_at = worker.slurmd, record.reason_changed_at
    started_at = slurmd.state.running.started_at if slurmd is not None and slurmd.state.running else None
    if record.is_drained_by_slurm:  # What it drained for goes with the pod, not with a container.
        started_at = worker.pod.metadata.creation_timestamp
    elif given_up_for(record.reason) == REBOOTED or _is_noted(record):
        return True
    return started_at is not None and changed_at is not None and changed_at < started_at + STARTS_WITHIN


def _is_noted(record: SlurmNode) -> bool:
    """Our drain says that it was down before, and nothing was said of it since."""
    ours = OurReason.read(record.reason)
    return ours is not None and ours.text.startswith(wire_words.WAS_DOWN) and not given_up_for(record.reason)
