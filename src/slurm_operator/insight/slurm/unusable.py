"""Slurm nodes that take no new jobs. Where none does, nothing is well, however ready the pods are."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from slurm_operator import wire
from slurm_operator.api.shared import belonging
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.insight.drain.decide import drained_by, slurm_name
from slurm_operator.insight.text.output import node_state
from slurm_operator.manifests.objects import Pod
from slurm_operator.reconcilers.nodeset.worker.drain_causes import LEAVING
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Snapshot

# So many different causes are told; of the others their number.
_MOST_CAUSES = 3


class Unusable(wire.Record):
    """Every node of these takes no new jobs. `nodes` are those with the most frequent cause."""

    says: str
    nodes: tuple[SlurmNode, ...] = ()


def all_unusable(nodes: Iterable[SlurmNode]) -> Unusable | None:
    """Why none of these nodes takes new jobs; None when one does, or when all of them are being replaced."""
    there = list(nodes)
    out = [node for node in there if is_out(node)]
    if not there or len(out) < len(there) or all(map(_is_leaving, out)):
        return None
    groups: defaultdict[str, list[SlurmNode]] = defaultdict(list)
    for node in out:
        groups[_phrase(node)].append(node)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    _, first = ordered[0]
    return Unusable(says=f"{_counted(len(out), len(there))} {_says(ordered)}", nodes=tuple(first))


def is_out(node: SlurmNode) -> bool:
    """Whether no new job starts there. Slurm itself wakes a node that it has powered down."""
    state = node.state
    return state.is_drain or state.is_down or state.is_unresponsive or state.is_failing or state.is_invalid


def nodes_of(node_set: NodeSet, pods: Iterable[Pod], slurm: Snapshot) -> list[SlurmNode]:
    """The Slurm nodes of a NodeSet's workers."""
    mine = (
        slurm_name(pod)
        for pod in pods
        if belonging.daemon_of(pod.metadata.labels) == "slurmd"
        and belonging.owner_of(pod.metadata.labels) == node_set.metadata.name
        and pod.metadata.namespace == node_set.metadata.namespace
    )
    return [slurm.nodes[name] for name in mine if name in slurm.nodes]


def counted_unusable(about: object) -> Unusable | None:
    """The same by what the operator has counted, for those who cannot ask Slurm. It does not say why."""
    if isinstance(about, Cluster) and about.status.nodes is not None:
        nodes = about.status.nodes
        return _by_counts(nodes.total, nodes.draining + nodes.drained, nodes.down)
    if isinstance(about, NodeSet):
        told = about.status
        if told.draining:  # By the operator, for reasons that its own conditions tell.
            return None
        if max(told.slurm_drain, told.slurm_down) < told.registered_replicas:  # One may be both.
            return None
        return _by_counts(told.registered_replicas, told.slurm_drain, told.slurm_down)
    return None


def _by_counts(total: int, drained: int, down: int) -> Unusable | None:
    if total <= 0 or drained + down < total:
        return None
    states = [f"{drained} drained" if drained else "", f"{down} down" if down else ""]
    return Unusable(says=f"{_counted(total, total)} take no new jobs ({', '.join(filter(None, states))})")


def _counted(number: int, total: int) -> str:
    return f"{number} of {total} {'node' if total == 1 else 'nodes'}"


def _says(groups: Sequence[tuple[str, list[SlurmNode]]]) -> str:
    if len(groups) == 1:
        phrase, nodes = groups[0]
        return f"{'is' if len(nodes) == 1 else 'are'} {phrase}"
    told = "; ".join(f"{len(nodes)} {phrase}" for phrase, nodes in groups[:_MOST_CAUSES])
    more = (
        f"; and {sum(len(nodes) for _, nodes in groups[_MOST_CAUSES:])} more" if groups[_MOST_CAUSES:] else ""
    )
    return f"take no new jobs: {told}{more}"


def _phrase(node: SlurmNode) -> str:
    """Why this one takes no jobs: drained by root: bad NIC."""
    if node.state.is_drain:
        who, why = drained_by(node)
        ours = OurReason.read(node.reason)
        told = ours.text if ours is not None else why
        verb = "drained" if node.state.is_drained else "being drained"
        return f"{verb}{f' by {who}' if who else ''}{f': {told}' if told else ', without a reason'}"
    if node.state.is_down or node.state.is_unresponsive:
        return f"down{f': {node.reason}' if node.reason else ''}"
    return node_state(node.state)


def _is_leaving(node: SlurmNode) -> bool:
    """The operator removes or replaces its worker, and says so elsewhere."""
    ours = OurReason.read(node.reason) if node.state.is_drain else None
    return ours is not None and ours.cause in LEAVING
