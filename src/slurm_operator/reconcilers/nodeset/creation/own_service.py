"""A headless Service of one NodeSet alone, beside the one of all workers: only where the spec names it."""

from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import Action
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.shared.children import missing_writes, taken


def own_service(nodeset: NodeSet) -> Manifest:
    made = identity.owner(nodeset).headless_service(nodeset.service, "slurmd", names.SLURMD_PORT)
    made["metadata"]["labels"][names.LABEL_CLUSTER] = nodeset.spec.controller
    return made


def writes(seen: Seen) -> list[Action]:
    """What is missing of it, or a word that its name is somebody else's."""
    if not seen.nodeset.service or seen.nodeset.metadata.is_terminating:
        return []
    wanted, there = [own_service(seen.nodeset)], seen.own_service
    return [
        *missing_writes(wanted, lambda kind, namespace, name: there),
        *taken(wanted, lambda kind, namespace, name: there),
    ]
