"""Slurm's records of workers: which of them have served their time, and how one is removed."""

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.shared.worker_parts import Records
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Fence, WriteSlurm
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Leaving
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.record_removal import may_delete_record
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurm.writes import DeleteNodes

# On a pod that was made after the record of the worker before it was removed.
FRESH_RECORD = "nodeset.slinky.slurm.net/fresh-record"


def is_outdated(slurm_node: str, slurm: Snapshot | Unreachable, own_reservation: str = "") -> bool:
    """The record is of a worker that went because its resources changed, as its drain says, and may go.

    A record is not updated by a new registration: fewer CPUs than it has would be refused, more ignored.
    """
    record = slurm.nodes.get(slurm_node) if isinstance(slurm, Snapshot) else None
    noted = OurReason.read(record.reason) if record is not None and record.is_drained_by_us else None
    is_noted = noted is not None and noted.cause == Leaving.RESOURCES
    return is_noted and may_delete_record(slurm_node, slurm, own_reservation)


def has_outdated_record(worker: Worker, own_reservation: str) -> bool:
    """It registered with the record of the worker before it, whose resources were others."""
    if worker.record is None or not is_outdated(worker.slurm_node, worker.slurm, own_reservation):
        return False
    noted = OurReason.read(worker.record.reason)
    return noted is not None and noted.pod_uid != worker.uid


def is_refused(worker: Worker) -> bool:
    """slurmctld does not take what it registered with, because the record is of an earlier worker.

    A worker that came after the old record was removed made its own. If that is refused too, the next one's
    would be as well: then it is only told.
    """
    record = worker.record
    if worker.nodeset.spec.records is Records.STATIC:
        return False  # Its line says what it should be, and is the same for the next one.
    if record is None or not record.state.is_invalid or FRESH_RECORD in worker.pod.metadata.annotations:
        return False
    noted = OurReason.read(record.reason)
    is_by_us = noted is not None and noted.cause in (Leaving.RESOURCES, Leaving.UPDATE)
    return is_by_us or record.is_marked_by_slurm


def forget(
    slurm_node: str, controller: ObjectKey, reason: Reason, why: str = "", fence: Fence | None = None
) -> WriteSlurm:
    """slurmctld refuses while a job is there, and afterwards can start none."""
    return WriteSlurm(
        controller=controller,
        write=DeleteNodes(nodes=(slurm_node,)),
        reason=reason,
        message=f"removing {slurm_node} from Slurm" + (f": {why}" if why else ""),
        fence=fence,
    )
