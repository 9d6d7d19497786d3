"""Workers whose namespace is being deleted, and their slurmctld with it.

Kubernetes takes the namespace apart in no order: slurmctld goes at once, and cannot come back. Then no job
can start any more, and nobody but the worker itself can say when its last one is over. So it loses its
protection: asked to end, it waits for its jobs, for as long as its grace period lets it.
"""

from slurm_operator.api import names
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.platform import Namespace
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.nodeset.marks import marked
from slurm_operator.reconcilers.nodeset.members import Member
from slurm_operator.reconcilers.nodeset.retire import Stages
from slurm_operator.slurm.snapshot import Unreachable


def is_abandoned(nodeset: NodeSet, world: World) -> bool:
    """There is no slurmctld, and in a namespace that is being deleted there will be none."""
    meta = nodeset.metadata
    namespace = world.get(Namespace, "", meta.namespace)
    if namespace is None or not (namespace.metadata.is_terminating and meta.is_terminating):
        return False
    workload = names.controller_workload(nodeset.spec.controller)
    is_gone = world.child(kinds.STATEFUL_SET, meta.namespace, workload) is None
    return is_gone and isinstance(world.slurm(meta.namespace, nodeset.spec.controller), Unreachable)


def let_go(member: Member) -> Stages:
    """Whoever deletes the namespace may delete it from now on."""
    message = f"{member.slurm_node} may be deleted: its namespace goes, and slurmctld is gone already"
    released = marked(member, "Released", message, labels={names.LABEL_POD_PROTECT: None})
    waiting = "slurmctld is gone with its namespace; the worker ends when its own processes show no job"
    return [[*released, Wait(subject=member.slurm_node, reason="Abandoned", message=waiting)]]
