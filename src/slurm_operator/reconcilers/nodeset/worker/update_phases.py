"""How far the replacement of a worker is, in labels of its pod: tools of the second API read them there.

A NodeSet asks for them by a label of its children. They tell what is decided, and nothing follows from them.
"""

from slurm_operator.api.shared import names
from slurm_operator.plan.actions import DeleteWorker, PatchObject
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.nodeset.annotations import Marks, marked
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Cause, Leaving
from slurm_operator.reconcilers.nodeset.worker.removal import Stages
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import Drained

STOPPING = "stopping"  # It is drained, and its jobs run to their end.
READY = "ready"  # No unfinished job is left: its pod is deleted next.


def phase_writes(worker: Worker, seen: Seen, cause: Cause | None) -> list[Lane]:
    """The labels of a worker that is not deleted now: the phase of its update, or none."""
    told = seen.nodeset.spec.children.labels.get(names.UPDATES_FOLLOWED)
    if told is None or worker.is_terminating:
        return []
    is_told = told == "true" and _is_replaced(worker, seen, cause)
    wanted: Marks = {
        names.UPDATES_FOLLOWED: told,
        names.UPDATE_OPERATION: seen.revision.hash if is_told else None,
        names.UPDATE_PHASE: STOPPING if is_told else None,
    }
    message = (
        f"{worker.slurm_node} is stopping, to be replaced by revision {seen.revision.hash}"
        if is_told
        else f"{worker.slurm_node} is not being replaced"
    )
    writes = marked(worker, "UpdatePhase", message, labels=wanted, is_housekeeping=True)
    return [lane(f"update phase of {worker.slurm_node}", writes, is_note=True)] if writes else []


def ready_to_go(worker: Worker, seen: Seen, cause: Cause | None, stages: Stages) -> list[PatchObject]:
    """Written before a worker without jobs is deleted for an update.

    Not where slurmd crashed or never started: such a proof holds for one version of the pod, and a write of
    ours would take it away.
    """
    proofs = [action.proof for stage in stages for action in stage if isinstance(action, DeleteWorker)]
    is_followed = seen.nodeset.spec.children.labels.get(names.UPDATES_FOLLOWED) == "true"
    if not (is_followed and _is_replaced(worker, seen, cause)):
        return []
    if not proofs or not all(isinstance(proof, Drained) for proof in proofs):
        return []
    labels: Marks = {names.UPDATE_OPERATION: seen.revision.hash, names.UPDATE_PHASE: READY}
    message = f"{worker.slurm_node} is free of jobs and ready to be replaced by revision {seen.revision.hash}"
    return marked(worker, "UpdatePhase", message, labels=labels, is_housekeeping=True)


def _is_replaced(worker: Worker, seen: Seen, cause: Cause | None) -> bool:
    """It leaves because what workers are made from has changed, and for nothing else."""
    is_update = cause is not None and cause.kind in (Leaving.UPDATE, Leaving.RESOURCES)
    return is_update and seen.is_former(worker)
