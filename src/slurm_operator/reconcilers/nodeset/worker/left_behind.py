"""Workers that an API server created when their NodeSet was gone: they leave as if it were being deleted.

With a slurmctld to ask they leave by the gate. When the Controller is gone as well, and slurmctld with it, no
job can start there any more, and they end as in a namespace that is being deleted. Where slurmctld may be
elsewhere, a person has to say so.
"""

from collections.abc import Sequence

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.shared.refs import Reference
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet, NodeSetSpec
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nodeset.worker.namespace_deletion import release
from slurm_operator.reconcilers.nodeset.worker.removal import Stages
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.reconcilers.shared.children import seen_pods

LEFT_BEHIND = Reason.LEFT_BEHIND


def former_nodeset(key: ObjectKey, pods: Sequence[Pod]) -> NodeSet:
    """What can be told of it from the workers that it left: that it is to go, and with whom."""
    first = pods[0].metadata
    meta = Meta(
        name=key.name,
        namespace=key.namespace,
        uid=first.owner.uid if first.owner is not None else "",
        deletion_timestamp=first.creation_timestamp,
        finalizers=(names.WORKERS_FINALIZER,),
    )
    controller = Reference(name=first.labels.get(names.LABEL_CLUSTER, ""))
    return NodeSet(metadata=meta, spec=NodeSetSpec(controller_ref=controller))


def has_nobody_to_ask(nodeset: NodeSet, world: World) -> bool:
    """The Controller is gone, too, and the slurmctld that it had.

    Its workload may be called otherwise, which only the Controller could say; its pods say whose they are.
    """
    namespace, controller = nodeset.metadata.namespace, nodeset.spec.controller
    if world.get(Controller, namespace, controller) is not None:
        return False
    workload = world.child(kinds.STATEFUL_SET, namespace, names.controller_workload(controller))
    running = (pod for pod in seen_pods(world, namespace, "slurmctld", controller) if not pod.has_ended)
    return workload is None and not any(running)


def let_go(worker: Worker) -> Stages:
    """What is done about one whose jobs nobody can tell. Of a slurmctld elsewhere it has no key ring."""
    meta = worker.pod.metadata
    if names.KEY_RING in meta.annotations and names.LABEL_CLUSTER in meta.labels:
        return release(worker, "its NodeSet and its Controller are gone")
    message = (
        "its NodeSet and its Controller are gone, and slurmctld may be elsewhere and have jobs here. "
        f"If it has none, annotate the pod with {names.ALLOW_DELETION}=true and delete it"
    )
    return [[Wait(subject=worker.slurm_node, reason=LEFT_BEHIND, message=message)]]
