"""Records in Slurm that no worker of ours stands behind any more."""

from slurm_operator.api.shared.worker_parts import Pruning
from slurm_operator.conditions import Reason
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.departures.replica_plan import Choices
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records import comment
from slurm_operator.reconcilers.nodeset.records.created_records import is_created, known_names
from slurm_operator.reconcilers.nodeset.records.leftovers import Sibling
from slurm_operator.reconcilers.nodeset.records.outdated import forget
from slurm_operator.reconcilers.nodeset.worker.drain_causes import LEAVING
from slurm_operator.safety.record_removal import may_delete_record
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import OurReason


def stale_record_removals(seen: Seen, choices: Choices) -> list[Lane]:
    """Removes what is left of workers that do not come back, once neither job nor reservation names it."""
    coming = {slot.hostname for slot in (*choices.create, *(held.slot for held in choices.held))}
    expected = coming | known_names(seen.nodeset)
    return [
        lane(
            f"record {record.name}",
            [forget(record.name, seen.controller_key, Reason.DEFUNCT_SLURM_NODE_PRUNED, why)],
        )
        for record in seen.remains.records
        if record.name not in expected
        and _was_ours(record, seen)
        and (why := _why_gone(record, seen)) is not None
        and may_delete_record(record.name, seen.slurm)
    ]


def _was_ours(record: SlurmNode, seen: Seen) -> bool:
    """Whether a worker of this NodeSet left it, beyond doubt.

    Its comment says so, if there is one. Else it is called as our numbered workers are and no other NodeSet
    has a claim; or we drained it, which nobody but a NodeSet of this feature has done.
    """
    told = comment.read(record.comment)
    if told is not None and not comment.names_set(told, seen.nodeset):
        return False
    if _is_numbered(record, seen):
        return not any(_is_claimed(record, sibling, seen) for sibling in seen.remains.siblings)
    if told is not None:
        return comment.names_this_set(told, seen.nodeset)
    is_shared = any(sibling.slurm_name in record.features for sibling in seen.remains.siblings)
    return record.is_drained_by_us and not is_shared and not _may_be_of_another_operator(record, seen)


def _is_claimed(record: SlurmNode, sibling: Sibling, seen: Seen) -> bool:
    """Another NodeSet may have left it, or may come back to it."""
    is_called_so = identity.is_numbered(record.name, sibling.prefix) or (
        sibling.is_by_machine and _may_be_a_machine(record, seen)
    )
    return sibling.slurm_name in record.features and is_called_so


def _may_be_of_another_operator(record: SlurmNode, seen: Seen) -> bool:
    """A slurmctld outside Kubernetes may serve several of them, and Slurm still hears this worker."""
    is_external = seen.controller is None or seen.controller.spec.external
    return is_external and not record.state.is_defunct


def _why_gone(record: SlurmNode, seen: Seen) -> str | None:
    """Why nobody comes back to this record, as far as it can be known; None when somebody may."""
    if _was_sent_away(record):
        return "its worker was sent away and is gone"
    if is_created(seen.nodeset) and _is_numbered(record, seen):
        return "no worker of this number is wanted"
    if not record.state.is_defunct:
        return None
    if not identity.is_by_machine(seen.nodeset):
        is_number = _is_numbered(record, seen)
        called = "it was called like its machine, and workers have numbers now"
        return "no worker of this number is wanted" if is_number else called
    if _may_be_a_machine(record, seen):
        return None
    if _is_numbered(record, seen):
        return "no worker of this number is wanted"
    is_asked_for = seen.nodeset.spec.prune_slurm_node_records is Pruning.NODE_NOT_FOUND
    return "its Kubernetes node is gone" if is_asked_for or not seen.is_daemon else None


def _may_be_a_machine(record: SlurmNode, seen: Seen) -> bool:
    return not seen.sees_machines or record.name in seen.remains.machines


def _was_sent_away(record: SlurmNode) -> bool:
    """Our own drain stands there, and it was about a worker that had to go."""
    ours = OurReason.read(record.reason) if record.is_drained_by_us else None
    return ours is not None and ours.cause in LEAVING


def _is_numbered(record: SlurmNode, seen: Seen) -> bool:
    """It is called as our numbered workers are."""
    return identity.is_numbered(record.name, identity.prefix(seen.nodeset))
