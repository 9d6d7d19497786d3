"""NodeSet of a SlurmCluster: identical workers on its shared root, as a part of the engine."""

from collections.abc import Iterator

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.jailedconfig import JailedConfig
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.reconciler import Reconciler, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nebius.nodeset.decide import decide
from slurm_operator.reconcilers.nebius.nodeset.observe import Seen, observe
from slurm_operator.reconcilers.nebius.nodeset.status import status
from slurm_operator.reconcilers.nebius.shared.soperator_pods import clusters_with, is_soperators


def of_cluster(cluster: SlurmCluster, world: World) -> Iterator[ObjectKey]:
    """All in the namespace: those that name another one say which there are."""
    for nodeset in world.all(NodeSet, cluster.metadata.namespace):
        yield key_of(nodeset)


def is_no_news(old: SlurmCluster, new: SlurmCluster) -> bool:
    """Whether only its status changed, and not what workers wait for."""
    return (
        old.metadata.generation == new.metadata.generation
        and old.metadata.is_terminating == new.metadata.is_terminating
        and old.metadata.annotations == new.metadata.annotations
        and _populated(old) == _populated(new)
    )


def _populated(cluster: SlurmCluster) -> str:
    return next((str(one.status) for one in cluster.status.conditions if one.type == "RootPopulated"), "")


def of_files(config: JailedConfig, world: World) -> Iterator[ObjectKey]:
    for nodeset in world.all(NodeSet, config.metadata.namespace):
        named = (names.slurm_configs(nodeset.cluster), names.mount_points(nodeset.cluster))
        if config.metadata.name in named:
            yield key_of(nodeset)


def of_part(part: WorkerPart, world: World) -> Iterator[ObjectKey]:
    """The NodeSet that made it, or that waits for its name."""
    yield key_of(part)


def of_power_state(power: NodeSetPowerState, world: World) -> Iterator[ObjectKey]:
    """Only the object of its name counts for a NodeSet."""
    yield key_of(power)


def is_same_wish(old: NodeSetPowerState, new: NodeSetPowerState) -> bool:
    """Whether only its status changed."""
    return old.spec == new.spec and old.metadata.is_terminating == new.metadata.is_terminating


def of_soperators_pod(pod: Pod, world: World) -> Iterator[ObjectKey]:
    """NodeSets of the cluster wait until the last pod that Soperator made has ended."""
    for cluster in clusters_with(pod):
        for nodeset in world.all(NodeSet, pod.metadata.namespace):
            if nodeset.cluster == cluster:
                yield key_of(nodeset)


def is_same_pod(old: Pod, new: Pod) -> bool:
    """Whether it counts as before."""
    return is_soperators(old) == is_soperators(new)


# Secrets and ConfigMaps are asked for by name, so their changes wake us too.
RECONCILER = Reconciler[Seen](
    name="slurmcluster-nodeset",
    kind=NodeSet.KIND,
    about=NodeSet,
    observe=observe,
    decide=decide,
    status=status,
    validates_itself=True,
    wakes=(
        Wake(SlurmCluster, of_cluster, is_no_news),
        Wake(JailedConfig, of_files),
        Wake(WorkerPart, of_part),
        Wake(NodeSetPowerState, of_power_state, is_same_wish),
        Wake(Pod, of_soperators_pod, is_same_pod),
    ),
    children=(kinds.CONFIG_MAP, kinds.APP_ARMOR_PROFILE, kinds.KRUISE_STATEFUL_SET),
    urgent_status_fields=("phase",),
)
