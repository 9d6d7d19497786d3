"""Cluster: a whole Slurm cluster, put together from the kinds that run one daemon each."""

from collections.abc import Iterator

from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.manifests.platform import StorageClass
from slurm_operator.plan.reconciler import Reconciler, SlurmWake, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.cluster.decide import decide
from slurm_operator.reconcilers.cluster.observe import Seen, observe
from slurm_operator.reconcilers.cluster.status import status
from slurm_operator.reconcilers.shared.composed import PART_TYPES
from slurm_operator.reconcilers.shared.slurm_servers import slurm_of
from slurm_operator.slurm.snapshot import Changes


def clusters_of(part: HasMeta, world: World) -> Iterator[ObjectKey]:
    """The Cluster that made a part, and those that may be waiting for its name."""
    meta = part.metadata
    if meta.owner is not None and meta.owner.is_a(Cluster.KIND):
        yield ObjectKey(meta.namespace, meta.owner.name)
    for cluster in world.all(Cluster, meta.namespace):
        if f"{meta.name}-".startswith(f"{cluster.metadata.name}-"):
            yield key_of(cluster)


def everywhere(storage: StorageClass, world: World) -> Iterator[ObjectKey]:
    """Clusters that have no Controller yet may still get a volume."""
    yield from (key_of(cluster) for cluster in world.all(Cluster) if not cluster.status.components)


def in_slurm(slurm: ObjectKey, changes: Changes, world: World) -> Iterator[ObjectKey]:
    if changes.is_empty:
        return
    for cluster in world.all(Cluster, slurm.namespace):
        if slurm_of(cluster) == slurm:
            yield key_of(cluster)


RECONCILER = Reconciler[Seen](
    name="cluster",
    kind=Cluster.KIND,
    about=Cluster,
    observe=observe,
    decide=decide,
    status=status,
    validates_itself=True,
    wakes=(
        *(Wake(type_, clusters_of) for type_ in PART_TYPES),
        Wake(StorageClass, everywhere),
    ),
    slurm_wake=SlurmWake(in_slurm),
    urgent_status_fields=("clusterName", "components", "isolation"),
)
