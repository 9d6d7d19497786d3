"""Workers whose namespace is being deleted, and their slurmctld with it.

Kubernetes takes the namespace apart in no order: slurmctld goes at once, and cannot come back. Then no job
can start any more, and nobody but the worker itself can say when its last one is over. So it loses its
protection: asked to end, it waits for its jobs, for as long as its grace period lets it.

A slurmctld elsewhere goes on, and only the slurmrestd between us and it may go with the namespace. Jobs run
and start all the same, so the worker stays protected until it is seen to have none, or a person lets it go.
"""

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.platform import Namespace
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nodeset.annotations import marked
from slurm_operator.reconcilers.nodeset.worker.removal import Stages
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.snapshot import Unreachable


def is_abandoned(nodeset: NodeSet, world: World) -> bool:
    """There is no slurmctld, and in a namespace that is being deleted there will be none.

    Of a Controller that is gone nobody knows any more where its slurmctld was. Its workers are let go too.
    """
    controller = world.get(Controller, nodeset.metadata.namespace, nodeset.spec.controller)
    usual = names.controller_workload(nodeset.spec.controller)
    workload = controller.child_names.workload if controller is not None else usual
    is_gone = world.child(kinds.STATEFUL_SET, nodeset.metadata.namespace, workload) is None
    return _is_out_of_sight(nodeset, world) and is_gone and not _is_elsewhere(nodeset, world)


def is_cut_off(nodeset: NodeSet, world: World) -> bool:
    """slurmctld is elsewhere and goes on, but nobody in this namespace can ask it any more."""
    return _is_out_of_sight(nodeset, world) and _is_elsewhere(nodeset, world)


def release(worker: Worker, why: str = "its namespace is being deleted") -> Stages:
    """Whoever deletes the namespace may delete it from now on."""
    message = f"{worker.slurm_node} may be deleted: {why}, and no slurmctld is left to ask"
    released = marked(worker, Reason.RELEASED, message, labels={names.LABEL_POD_PROTECT: None})
    waiting = f"{why}, and no slurmctld is left to ask; the worker ends when it sees no job of its own"
    return [[*released, Wait(subject=worker.slurm_node, reason=Reason.ABANDONED, message=waiting)]]


def keep_protected(worker: Worker, controller: ObjectKey) -> Stages:
    """It keeps its protection, and a person is told how it can go all the same."""
    message = (
        "its namespace is being deleted, and slurmrestd with it, but slurmctld is elsewhere and may have "
        "jobs here. To let each worker end after its own jobs, within its grace period, annotate "
        f"Controller {controller.name} with {names.FORCE_DELETION}=true"
    )
    return [[Wait(subject=worker.slurm_node, reason=Reason.CUT_OFF, message=message)]]


def _is_out_of_sight(nodeset: NodeSet, world: World) -> bool:
    """It goes with its namespace, and Slurm does not answer."""
    meta = nodeset.metadata
    namespace = world.get(Namespace, "", meta.namespace)
    if namespace is None or not (namespace.metadata.is_terminating and meta.is_terminating):
        return False
    return isinstance(world.slurm(meta.namespace, nodeset.spec.controller), Unreachable)


def _is_elsewhere(nodeset: NodeSet, world: World) -> bool:
    controller = world.get(Controller, nodeset.metadata.namespace, nodeset.spec.controller)
    return controller is not None and controller.spec.external
