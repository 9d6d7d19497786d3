"""Records in Slurm that no worker of ours stands behind any more."""

import re

from slurm_operator.api.workers import Pruning
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.causes import Leaving
from slurm_operator.reconcilers.nodeset.choices import Choices
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records import forget
from slurm_operator.slurm.forgetting import may_forget
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Snapshot


def forgotten(seen: Seen, choices: Choices) -> list[Lane]:
    """Removes what is left of workers that do not come back, once neither job nor reservation names it."""
    if not isinstance(seen.slurm, Snapshot):
        return []
    expected = {member.slurm_node for member in seen.members} | {slot.hostname for slot in choices.create}
    return [
        lane(f"record {name}", [forget(name, seen.controller_key, "DefunctSlurmNodePruned", why)])
        for name, record in seen.slurm.nodes.items()
        if name not in expected
        and seen.nodeset.slurm_name in record.features
        and (why := _why_gone(record, seen)) is not None
        and may_forget(name, seen.slurm)
    ]


def _why_gone(record: SlurmNode, seen: Seen) -> str | None:
    """Why nobody comes back to this record, as far as it can be known; None when somebody may."""
    if _was_sent_away(record):
        return "its worker was sent away and is gone"
    if not record.state.is_defunct:
        return None
    if seen.is_daemon and not _is_of_a_number(record.name, seen):
        policy = seen.nodeset.spec.prune_slurm_node_records
        is_asked_for = policy is Pruning.NODE_NOT_FOUND and seen.sees_machines
        is_known = record.name in _machines(seen)
        return "its Kubernetes node is gone" if is_asked_for and not is_known else None
    if record.is_drained_by_us and not _is_numbered(record.name, seen):
        return "it was called like its machine, and workers have numbers now"
    return "no worker of this number is wanted" if _is_numbered(record.name, seen) else None


def _is_of_a_number(name: str, seen: Seen) -> bool:
    """In DaemonSet mode: left behind by a numbered worker, from the time before."""
    return seen.sees_machines and _is_numbered(name, seen) and name not in _machines(seen)


def _machines(seen: Seen) -> set[str]:
    return {identity.daemon_hostname(kube_node) for kube_node in seen.kube_nodes.values()}


def _was_sent_away(record: SlurmNode) -> bool:
    """Our own drain stands there, and it was about a worker that had to go."""
    ours = OurReason.read(record.reason) if record.is_drained_by_us else None
    return ours is not None and ours.cause in set(Leaving)


def _is_numbered(name: str, seen: Seen) -> bool:
    """It is called as our numbered workers are."""
    prefix = seen.nodeset.spec.hostname_prefix or f"{seen.nodeset.metadata.name}-"
    return re.fullmatch(re.escape(prefix) + r"\d+", name) is not None
