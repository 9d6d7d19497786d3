"""NodeSetPowerState: which ephemeral workers of a NodeSet run, kept true to what Slurm waits for."""

from collections.abc import Iterator

from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.reconciler import Reconciler, SlurmWake, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nebius.powerstate.decide import decide
from slurm_operator.reconcilers.nebius.powerstate.observe import Seen, observe
from slurm_operator.reconcilers.nebius.powerstate.status import status
from slurm_operator.slurm.snapshot import Changes


def of_nodeset(nodeset: NodeSet | WorkerPart, world: World) -> Iterator[ObjectKey]:
    """All three are called alike."""
    if world.get(NodeSetPowerState, nodeset.metadata.namespace, nodeset.metadata.name) is not None:
        yield key_of(nodeset)


def of_pod(pod: Pod, world: World) -> Iterator[ObjectKey]:
    owner, namespace = pod.metadata.owner, pod.metadata.namespace
    if owner is None or not owner.is_a(WorkerPart.KIND):
        return
    if world.get(NodeSetPowerState, namespace, owner.name) is not None:
        yield ObjectKey(namespace, owner.name)


def in_slurm(slurm: ObjectKey, changes: Changes, world: World) -> Iterator[ObjectKey]:
    if not (changes.everything or changes.nodes):
        return
    for power in world.all(NodeSetPowerState, slurm.namespace):
        nodeset = world.get(NodeSet, slurm.namespace, power.metadata.name)
        if nodeset is not None and nodeset.cluster == slurm.name:
            yield key_of(power)


RECONCILER = Reconciler[Seen](
    name="nodesetpowerstate",
    kind=NodeSetPowerState.KIND,
    about=NodeSetPowerState,
    observe=observe,
    decide=decide,
    status=status,
    validates_itself=True,
    wakes=(Wake(NodeSet, of_nodeset), Wake(WorkerPart, of_nodeset), Wake(Pod, of_pod)),
    slurm_wake=SlurmWake(in_slurm),
)
