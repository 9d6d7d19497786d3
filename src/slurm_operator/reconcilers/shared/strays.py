"""Workers whose NodeSet is no more: an API server made them long after nobody waited for that any more.

Nobody deletes them: the policy of workers keeps the garbage collector from that. So they leave as the workers
of a NodeSet do that is being deleted, and until then the Slurm cluster stays that they may have jobs of.
"""

from collections.abc import Iterator

from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.world import OWNER_NAME, World


def is_stray(pod: Pod, world: World) -> bool:
    """Whether the NodeSet that it was made for is gone, and nobody has asked it to end.

    A NodeSet that cannot be read is there.
    """
    owner, namespace = pod.metadata.owner, pod.metadata.namespace
    if owner is None or not owner.is_a(NodeSet.KIND) or pod.metadata.is_terminating:
        return False
    found = world.get(NodeSet, namespace, owner.name)
    if found is None:
        return owner.name not in world.unreadable(NodeSet, namespace)
    return found.metadata.uid != owner.uid


def strays_of(nodeset: ObjectKey, world: World) -> list[Pod]:
    """Those that a NodeSet of this name has left."""
    return [pod for pod in world.find(Pod, OWNER_NAME, str(nodeset)) if is_stray(pod, world)]


def needing(controller: ObjectKey, world: World) -> Iterator[str]:
    """Who needs this Controller, in words."""
    for pod in world.all(Pod, controller.namespace):
        if cluster_of(pod) == controller and is_stray(pod, world):
            yield f"pod {pod.metadata.name}, whose NodeSet is gone"


def cluster_of(pod: Pod) -> ObjectKey:
    """The Controller that a worker was made for."""
    return ObjectKey(pod.metadata.namespace, pod.metadata.labels.get(names.LABEL_CLUSTER, ""))
