"""What is left in Slurm of workers that have no pod any more, and who else may have left it.

A record says by a feature to which NodeSet it belongs. That alone is no proof: `extraConf` may give workers
the feature of another NodeSet, and people may start a slurmd of their own with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.plan.world import NOBODY, OWNER, World
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable


@dataclass(frozen=True)
class Sibling:
    """Another NodeSet of the same Controller, by what Slurm calls it and its workers."""

    slurm_name: str
    prefix: str
    is_by_machine: bool


@dataclass(frozen=True)
class Remains:
    """`records` have our NodeSet's feature, and behind them is no worker of any NodeSet of the Controller.

    `machines` are all names that a worker on some machine could have. Without such records nobody needs the
    rest, and it is empty.
    """

    records: tuple[SlurmNode, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    machines: frozenset[str] = frozenset()


def remains(
    nodeset: NodeSet, workers: Sequence[Worker], slurm: Snapshot | Unreachable, world: World
) -> Remains:
    if not isinstance(slurm, Snapshot):
        return Remains()
    mine, name = {worker.slurm_node for worker in workers}, nodeset.slurm_name
    found = [record for record in slurm.nodes.values() if name in record.features and record.name not in mine]
    if not found:
        return Remains()
    others = list(_siblings(nodeset, world))
    theirs = {identity.slurm_node_name(pod) for pod in _workers(nodeset, others, world)}
    return Remains(
        records=tuple(record for record in found if record.name not in theirs),
        siblings=tuple(_sibling(other) for other in others),
        machines=frozenset(_machines(world)),
    )


def neighbours(nodeset: NodeSet, world: World) -> Iterator[Pod]:
    """Workers in the same Slurm cluster that are not its own: of other NodeSets, and of nobody."""
    for pod in _workers(nodeset, list(_siblings(nodeset, world)), world):
        labels = pod.metadata.labels
        is_here = labels.get(names.LABEL_CLUSTER, nodeset.spec.controller) == nodeset.spec.controller
        if is_here and belonging.daemon_of(labels) == "slurmd":
            yield pod


def _siblings(nodeset: NodeSet, world: World) -> Iterator[NodeSet]:
    for other in world.all(NodeSet, nodeset.metadata.namespace):
        if key_of(other) != key_of(nodeset) and other.spec.controller == nodeset.spec.controller:
            yield other


def _sibling(other: NodeSet) -> Sibling:
    return Sibling(other.slurm_name, identity.prefix(other), identity.is_by_machine(other))


def _workers(nodeset: NodeSet, others: Sequence[NodeSet], world: World) -> Iterator[Pod]:
    """Pods of the others, and pods that nobody owns: somebody may take them in."""
    for other in others:
        yield from world.find(Pod, OWNER, other.metadata.uid)
    for pod in world.find(Pod, OWNER, NOBODY):
        if pod.metadata.namespace == nodeset.metadata.namespace:
            yield pod


def _machines(world: World) -> Iterator[str]:
    for kube_node in world.all(KubeNode):
        yield kube_node.metadata.name
        yield identity.daemon_hostname(kube_node)
