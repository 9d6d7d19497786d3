"""Parts that have to go: in which order, and what they wait for."""

from slurm_operator.api.conditions import PROGRESSING, READY
from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import HasMeta, key_of
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.plan.actions import Action, DeleteObject, Wait
from slurm_operator.plan.composed import is_owned
from slurm_operator.reconcilers.cluster.observe import Part, Seen

# Workers go first, while everything is there that they need to go in peace; what keeps the records goes last.
FAREWELL = ("NodeSet", "LoginSet", "RestApi", "Controller", "Accounting")

# On an object whose dependents are to stay, by `kubectl delete --cascade=orphan`.
ORPHAN = "orphan"


def farewell(seen: Seen) -> list[Action]:
    """Delete one kind after the other: the next one when the last object of this one is gone."""
    if ORPHAN in seen.meta.finalizers:
        return []
    for kind in FAREWELL:
        if parts := seen.own(kind):
            return [gone(part) for part in parts]
    return []


def gone(part: Part) -> Action:
    """The next step towards an object's end. How long that takes is for the object itself to say."""
    name = named(part)
    if part.metadata.is_terminating:
        why = said_by(part) or "its own cleaning up is not over."
        return Wait(subject=name, reason="Leaving", message=f"waiting for {name} to be gone: {why}")
    return _deletion(part.KIND, part)


def said_by(part: Part) -> str:
    told = {condition.type: condition for condition in part.status.conditions}
    return next((told[type_].message for type_ in (PROGRESSING, READY) if type_ in told), "")


def surplus(seen: Seen, wanted: list[Manifest]) -> list[Part]:
    """Parts that were ours and are not wanted. An Accounting stays until the Controller has let go of it."""
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
    return [] if read or file.metadata.is_terminating else [_deletion(kinds.CONFIG_MAP, file)]


def named(part: Part) -> str:
    return f"{part.KIND.kind} {part.metadata.name}"


def _deletion(kind: Kind, thing: HasMeta) -> DeleteObject:
    return DeleteObject(
        kind=kind,
        key=key_of(thing),
        uid=thing.metadata.uid,
        reason="Deleted",
        message=f"deleted {kind.kind} {thing.metadata.name}: the Cluster no longer has it",
    )
