"""SlurmCluster: a Slurm cluster around one shared root, put together from the parts of the engine."""

from collections.abc import Iterator
from functools import partial

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.jailedconfig import JailedConfig
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.shared import names as shared_names
from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.plan.reconciler import Reconciler, SlurmWake, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nebius.shared.objects import APP
from slurm_operator.reconcilers.nebius.shared.root import COMPONENT, sharing_root
from slurm_operator.reconcilers.nebius.slurmcluster.decide import decide
from slurm_operator.reconcilers.nebius.slurmcluster.observe import OWN_PARTS, Seen, observe
from slurm_operator.reconcilers.nebius.slurmcluster.status import status
from slurm_operator.slurm.snapshot import Changes


def clusters_of(part: HasMeta, world: World) -> Iterator[ObjectKey]:
    """The SlurmCluster that made a part, and those that may be waiting for its name."""
    meta = part.metadata
    if meta.owner is not None and meta.owner.is_a(SlurmCluster.KIND):
        yield ObjectKey(meta.namespace, meta.owner.name)
    for cluster in world.all(SlurmCluster, meta.namespace):
        if f"{meta.name}-".startswith(f"{cluster.metadata.name}-"):
            yield key_of(cluster)


def of_nodeset(nodeset: NodeSet, world: World) -> Iterator[ObjectKey]:
    if nodeset.cluster:
        yield ObjectKey(nodeset.metadata.namespace, nodeset.cluster)


def of_workers(part: WorkerPart, world: World) -> Iterator[ObjectKey]:
    """What a NodeSet became belongs to it; its Controller is called like the SlurmCluster."""
    owner = part.metadata.owner
    if owner is not None and owner.is_a(NodeSet.KIND):
        yield ObjectKey(part.metadata.namespace, part.spec.controller)


def of_pod(pod: Pod, world: World) -> Iterator[ObjectKey]:
    """Pods on the root, or of the Job that populates it."""
    labels, namespace = pod.metadata.labels, pod.metadata.namespace
    if labels.get(shared_names.APP_NAME) != APP:
        return
    name = labels.get(shared_names.APP_INSTANCE, "")
    yield ObjectKey(namespace, name)
    cluster = world.get(SlurmCluster, namespace, name)
    if cluster is not None:
        yield from (key_of(one) for one in sharing_root(cluster, world) if one is not cluster)


def is_no_news(old: Pod, new: Pod) -> bool:
    """Of pods on the root it matters that they are there, and where; of the Job's own, everything."""
    component = new.metadata.labels.get(shared_names.APP_COMPONENT)
    is_where_it_was = old.spec.node_name == new.spec.node_name
    return component != COMPONENT and old.has_ended == new.has_ended and is_where_it_was


def of_kube_node(kube_node: KubeNode, world: World) -> Iterator[ObjectKey]:
    """Every SlurmCluster: which of them have workers there is found out by looking."""
    for cluster in world.all(SlurmCluster):
        yield key_of(cluster)


def has_the_same_labels(old: KubeNode, new: KubeNode) -> bool:
    return old.metadata.labels == new.metadata.labels


def in_slurm(slurm: ObjectKey, changes: Changes, world: World) -> Iterator[ObjectKey]:
    if not changes.is_empty and world.get(SlurmCluster, slurm.namespace, slurm.name) is not None:
        yield slurm


def reconciler(tier_prefix: str = names.TIER_PREFIX) -> Reconciler[Seen]:
    """As the operator's settings want it. Secrets and ConfigMaps are asked for by name, and wake us too."""
    return Reconciler[Seen](
        name="slurmcluster",
        kind=SlurmCluster.KIND,
        about=SlurmCluster,
        observe=partial(observe, tier_prefix=tier_prefix),
        decide=decide,
        status=status,
        validates_itself=True,
        wakes=(
            *(Wake(type_, clusters_of) for type_ in OWN_PARTS),
            Wake(NodeSet, of_nodeset),
            Wake(WorkerPart, of_workers),
            Wake(JailedConfig, clusters_of),
            Wake(Pod, of_pod, is_no_news),
            Wake(KubeNode, of_kube_node, ignores=has_the_same_labels),
        ),
        slurm_wake=SlurmWake(in_slurm),
        children=(
            kinds.CONFIG_MAP,
            kinds.DEPLOYMENT,
            kinds.JOB,
            kinds.SERVICE_ACCOUNT,
            kinds.ROLE,
            kinds.ROLE_BINDING,
            kinds.MARIADB,
            kinds.MARIADB_GRANT,
            kinds.POD_MONITOR,
            kinds.APP_ARMOR_PROFILE,
            kinds.KRUISE_STATEFUL_SET,
        ),
        urgent_status_fields=("phase",),
    )


RECONCILER = reconciler()
