"""Parts that have to go: in which order, and what they wait for."""

from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.actions import Action
from slurm_operator.reconcilers.cluster.observe import Seen
from slurm_operator.reconcilers.shared.composed import FAREWELL, ORPHAN, Part, deletion, next_removal_step
from slurm_operator.reconcilers.shared.parts import is_owned


def farewell(seen: Seen) -> list[Action]:
    """Delete one kind after the other: the next one when the last object of this one is gone."""
    if ORPHAN in seen.meta.finalizers:
        return []
    for kind in FAREWELL:
        if parts := seen.own(kind):
            return [next_removal_step(part, Cluster.KIND) for part in parts]
    return []


def surplus(seen: Seen, wanted: list[Manifest]) -> list[Part]:
    """Parts that were ours and are not wanted. An Accounting stays as long as the Controller names it."""
    names_ = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in wanted}
    controller = seen.controller
    is_used = controller is not None and bool(controller.spec.accounting)
    return [
        part
        for kind in FAREWELL
        for part in seen.own(kind)
        if (kind, part.metadata.name) not in names_ and not (kind == "Accounting" and is_used)
    ]


def unused_file(seen: Seen) -> list[Action]:
    """Our cgroup.conf, when the user has brought another one and the Controller reads that."""
    file, controller = seen.cgroup_conf, seen.controller
    if not seen.has_own_cgroup_conf or not isinstance(file, ConfigMap) or not is_owned(file, seen.meta):
        return []
    read = controller is not None and any(
        ref.name == file.metadata.name for ref in controller.spec.config_file_refs
    )
    return [] if read or file.metadata.is_terminating else [deletion(kinds.CONFIG_MAP, file, Cluster.KIND)]
