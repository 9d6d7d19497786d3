"""Kubernetes nodes with workers: maintenance, reboots and replacement, by conditions and drains."""

from collections.abc import Iterator
from functools import partial

from slurm_operator.api.nebius import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.manifests.worker_names import slurm_node_name
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import Reconciler, SlurmWake, StatusReport, Wake
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nebius.kubenode.braking import entering
from slurm_operator.reconcilers.nebius.kubenode.decide import decide
from slurm_operator.reconcilers.nebius.kubenode.observe import Seen, part_of, with_peers
from slurm_operator.reconcilers.nebius.kubenode.observe import observe as observe_alone
from slurm_operator.reconcilers.nebius.kubenode.options import NodeOptions
from slurm_operator.slurm.snapshot import Changes

NAME = "kubenode"


def of_pod(pod: Pod, world: World) -> Iterator[ObjectKey]:
    """Only workers of this API."""
    if pod.spec.node_name and part_of(pod, world) is not None:
        yield ObjectKey("", pod.spec.node_name)


def is_only_a_heartbeat(old: KubeNode, new: KubeNode) -> bool:
    """Nothing changed that is decided by."""
    return _concerns(old) == _concerns(new)


def _concerns(kube_node: KubeNode) -> tuple[object, ...]:
    meta = kube_node.metadata
    return (meta.uid, meta.labels, meta.annotations, kube_node.spec, kube_node.status.conditions)


def is_same_pod(old: Pod, new: Pod) -> bool:
    """What else changes of a pod, Slurm tells when it matters."""
    return (
        old.metadata.uid == new.metadata.uid
        and old.spec.node_name == new.spec.node_name
        and old.has_ended == new.has_ended
        and old.status.container_statuses == new.status.container_statuses
    )


def in_slurm(controller: ObjectKey, changes: Changes, world: World) -> Iterator[ObjectKey]:
    if not (changes.nodes or changes.everything):
        return
    for pod in world.all(Pod, controller.namespace):
        if changes.everything or slurm_node_name(pod) in changes.nodes:
            yield from of_pod(pod, world)


def observe(key: ObjectKey, world: World, options: NodeOptions) -> Seen | None:
    seen = observe_alone(key, world, options)
    return with_peers(seen, world) if seen is not None and entering(seen, world.now) else seen


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    """What there is to say stands in the conditions that the plan sets."""
    return StatusReport(conditions=[])


def reconciler(options: NodeOptions) -> Reconciler[Seen]:
    """As the operator's settings want it."""
    return Reconciler[Seen](
        name=NAME,
        kind=kinds.KUBE_NODE,
        about=KubeNode,
        observe=partial(observe, options=options),
        decide=decide,
        status=status,
        validates_itself=True,
        wakes=(Wake(Pod, of_pod, is_same_pod),),
        slurm_wake=SlurmWake(in_slurm),
        on_behalf_of=names.GROUP,
        writes_no_status=True,
        ignores=is_only_a_heartbeat,
    )
