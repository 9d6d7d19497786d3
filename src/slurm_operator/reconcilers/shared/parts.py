"""Parts of a composed object that are kinds of our own: what is missing, and what somebody else changed.

They are watched as typed records already, so those are what desired is compared with; nothing is kept twice.
"""

from typing import Any

from slurm_operator import wire
from slurm_operator.api.edited import edited_object
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.crd import Resource
from slurm_operator.api.shared.meta import HasMeta, Meta, key_of
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST, changes, stamped
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.plan.actions import Action, Apply, Create, PatchObject, Wait
from slurm_operator.reconcilers.shared.children import missing_write

PUT_BACK = "PutBack"
NAME_TAKEN = "NameTaken"


def is_owned(thing: HasMeta, owner: Meta) -> bool:
    """Whether `owner` made this object."""
    return thing.metadata.owner is not None and thing.metadata.owner.uid == owner.uid


def missing_part(manifest: Manifest, there: Resource | None, owner: Meta) -> Action | None:
    """The step that brings one part to what `manifest` says; None when it exists and equals that."""
    if there is None:
        return missing_write(manifest, lambda *_: None)
    if (waiting := _not_ours_to_write(there, owner)) is not None:
        return waiting
    return _difference(manifest, there, without=())


def missing_scaled_part(
    manifest: Manifest,
    there: Resource | None,
    owner: Meta,
    replicas: int | None,
    *,
    is_reverted: bool = False,
) -> Action | None:
    """The same for a part whose `replicas` may be somebody else's to write; None leaves them to others.

    They are never applied: a field that was applied once and is then left out falls back to its default, so
    handing it over to an autoscaler would let all workers but one go. `is_reverted`: the owner's spec has not
    changed since it was last looked at, so somebody else scaled the part.
    """
    if there is None:
        return _creation(manifest, replicas)
    if (waiting := _not_ours_to_write(there, owner)) is not None:
        return waiting
    change = _difference(manifest, there, without=("replicas",))
    if change is not None or replicas is None or replicas == _spec(there).replicas:
        return change
    message = f"{_part_name(there)} is scaled to {replicas} replicas, as spec asks for"
    edited = edited_object(there)
    if is_reverted and edited is not None:
        message = (
            f"reverted the scaling of {_part_name(there)} from {_spec(there).replicas} back to {replicas}: "
            f"{edited.kind} {edited.name} sets replicas. Set them in {edited.where}; "
            "where an autoscaler sets them, leave them out there"
        )
    return _patch(there, [_put("replicas", replicas)], "Scaled", message)


def _creation(manifest: Manifest, replicas: int | None) -> Create:
    wanted = stamped(manifest)
    if replicas is not None:
        wanted = wanted | {"spec": {**wanted["spec"], "replicas": replicas}}
    message = f"created {manifest['kind']} {manifest['metadata']['name']}"
    return Create(manifest=wanted, reason="Created", message=message)


def _not_ours_to_write(there: Resource, owner: Meta) -> Wait | None:
    name = _part_name(there)
    if not is_owned(there, owner):
        message = (
            f"{name} exists already and was not made by {owner.name!r}; it is left alone. "
            "Delete it, or choose another name."
        )
        return Wait(subject=name, reason=NAME_TAKEN, message=message)
    if there.metadata.is_terminating:
        message = f"{name} is being deleted; a new one is made when it is gone."
        return Wait(subject=name, reason="Leaving", message=message)
    return None


def _difference(manifest: Manifest, there: Resource, without: tuple[str, ...]) -> Apply | PatchObject | None:
    if _is_as_wanted(manifest, there, without):
        return None
    live = Child(metadata=there.metadata, body=codec.plain(there))
    write = missing_write(manifest, lambda *_: live)
    if write is None:
        return _removal(manifest, there, without)
    applied = write.manifest["metadata"]["annotations"][APPLIED_DIGEST]
    if there.metadata.annotations.get(APPLIED_DIGEST) != applied:
        return write
    fields = write.message.partition(": ")[2]
    return Apply(manifest=write.manifest, reason=PUT_BACK, message=_put_back(there, fields))


def _is_as_wanted(manifest: Manifest, there: Resource, without: tuple[str, ...]) -> bool:
    """The short way to the answer that nearly every pass has: records are equal, and so is the metadata."""
    wanted, live = _specs(manifest, there)
    kept = {field: getattr(live, field) for field in without}
    metadata = Child(metadata=there.metadata, body={"metadata": wire.plain(there.metadata)})
    return wire.replace(wanted, **kept) == live and not changes(
        {"metadata": stamped(manifest)["metadata"]}, metadata
    )


def _specs(manifest: Manifest, there: Resource) -> tuple[Any, Any]:
    """What `manifest` says, with all defaults, and what there is."""
    return _spec(codec.read(type(there), {"spec": manifest["spec"]})), _spec(there)


def _spec(thing: Any) -> Any:
    return thing.spec


def _removal(manifest: Manifest, there: Resource, without: tuple[str, ...]) -> PatchObject | None:
    """Takes back what somebody added: to apply does not help there, because that only adds."""
    said = manifest["spec"]
    wanted, live = map(codec.plain, _specs(manifest, there))
    fields = [
        field
        for field in sorted({*live, *wanted})
        if field not in without and live.get(field) != wanted.get(field)
    ]
    if not fields:
        return None
    operations = [_put(field, said[field]) if field in said else _remove(field) for field in fields]
    told = ", ".join(f"spec.{field}" for field in fields)
    return _patch(there, operations, PUT_BACK, _put_back(there, told))


def _put_back(there: Resource, fields: str) -> str:
    """For the person who edited a part: that it has no effect, and where it would have one."""
    edited = edited_object(there)
    where = (
        f"{edited.kind} {edited.name} sets it. Change it in {edited.where}" if edited else "its owner sets it"
    )
    return f"reverted an edit of {_part_name(there)} ({fields}): {where}"


def _put(field: str, value: object) -> dict[str, object]:
    return {"op": "add", "path": f"/spec/{field}", "value": value}


def _remove(field: str) -> dict[str, object]:
    return {"op": "remove", "path": f"/spec/{field}"}


def _patch(there: Resource, operations: list[dict[str, object]], reason: str, message: str) -> PatchObject:
    return PatchObject(
        kind=there.KIND,
        key=key_of(there),
        uid=there.metadata.uid,
        operations=tuple(operations),
        reason=reason,
        message=message,
    )


def _part_name(thing: Resource) -> str:
    return f"{thing.KIND.kind} {thing.metadata.name}"
