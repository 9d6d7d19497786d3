"""The label that keeps others from evicting and deleting a worker: a budget and a policy look at it."""

from datetime import datetime

from slurm_operator.api.shared import names
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import PatchObject
from slurm_operator.reconcilers.nodeset.annotations import marked, stays
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import Shut, ShutFor, gate


def release(worker: Worker) -> list[PatchObject]:
    """With a proof the worker needs no protection any more: evictions and deletes may pass."""
    message = f"{worker.slurm_node} is free of jobs, so it may be evicted"
    return marked(worker, Reason.RELEASED, message, labels={names.LABEL_POD_PROTECT: None})


def protect(worker: Worker, seen: Seen) -> list[PatchObject]:
    """The label as the spec wants it on a worker that may have a job."""
    wanted = "true" if seen.nodeset.spec.workload_disruption_protection else None
    if worker.pod.metadata.labels.get(names.LABEL_POD_PROTECT) == wanted:
        return []  # Nearly always; and to compose a message for each of a thousand workers is expensive.
    if wanted is not None:
        message = f"{worker.slurm_node} is protected from evictions and deletions"
        return marked(worker, Reason.PROTECTED, message, labels={names.LABEL_POD_PROTECT: "true"})
    message = f"{worker.slurm_node} is no longer protected, as the spec asks"
    return marked(worker, Reason.UNPROTECTED, message, labels={names.LABEL_POD_PROTECT: None})


def protect_again(worker: Worker, seen: Seen, now: datetime) -> list[PatchObject]:
    """Whoever was let go and leaves with a job after all, because somebody lifted the drain.

    One that ends already may be deleted by everybody, whatever it is labelled.
    """
    if worker.is_terminating:
        return []
    labelled, void = protect(worker, seen), stays(worker)
    verdict = gate(worker, now) if labelled or void else None
    if not isinstance(verdict, Shut):
        return []
    match verdict.reason:
        case ShutFor.CRASHED | ShutFor.DRAINING | ShutFor.NOT_DRAINING | ShutFor.STARTING:
            return [*labelled, *void]  # A job is there, or may start.
        case ShutFor.SLURM_UNREACHABLE | ShutFor.UNKNOWN_TO_SLURM | ShutFor.STATE_LOST:
            return void  # Nobody can tell, so the label stays as it is.
        case ShutFor.ANOTHER_WORKER:
            return void
        case ShutFor.OLD_ANSWER:
            return []
