"""From objects that should exist to the writes that are missing."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.meta import ObjectKey, OwnerReference
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import changes, settled_template, stamped
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import Pod, Secret, Unread
from slurm_operator.manifests.secrets import CONTENT_DIGEST, content_digest
from slurm_operator.plan.actions import Action, Apply, DeleteObject, PatchObject, Wait
from slurm_operator.plan.world import World

Live = Callable[[Kind, str, str], Child | None]

# How many fields a message names before it says "and so many more".
FIELDS_TOLD = 3

# What Kubernetes does with a changed workload when nobody says otherwise.
ROLLED = "RollingUpdate"


def seen_children(world: World, namespace: str, *wanted: tuple[Kind, str]) -> dict[tuple[Kind, str], Child]:
    """Those of the named objects that there are, to be looked at when deciding."""
    found = {(kind, name): world.child(kind, namespace, name) for kind, name in wanted}
    return {key: child for key, child in found.items() if child is not None}


def seen_pods(world: World, namespace: str, app: str, instance: str) -> list[Pod]:
    """The pods of one of our objects."""
    return [
        pod for pod in world.all(Pod, namespace) if belonging.part(pod.metadata.labels) == (app, instance)
    ]


def missing_among(desired: Iterable[Manifest], children: Mapping[tuple[Kind, str], Child]) -> list[Apply]:
    """As `missing_writes`, for children that were chosen while observing."""
    return missing_writes(desired, among(children))


def among(children: Mapping[tuple[Kind, str], Child]) -> Live:
    """One of these, all of the same namespace."""
    return lambda kind, namespace, name: children.get((kind, name))


def missing_writes(desired: Iterable[Manifest], live: Live) -> list[Apply]:
    """An Apply for each object that is absent or lacks something, with what in its message."""
    return [write for manifest in desired if (write := missing_write(manifest, live)) is not None]


class Missing(NamedTuple):
    """An Apply that is due, and the fields that it changes, as its message has them."""

    write: Apply
    fields: str


def missing_write(manifest: Manifest, live: Live) -> Apply | None:
    found = missing(manifest, live)
    return found.write if found is not None else None


def missing(manifest: Manifest, live: Live) -> Missing | None:
    metadata = manifest["metadata"]
    there = live(kinds.kind_of(manifest), metadata["namespace"], metadata["name"])
    if there is not None and there.metadata.is_terminating:
        return None  # Its successor is made when it is gone.
    if there is not None and _of_another(manifest["metadata"], there) is not None:
        return None  # `taken` says so.
    wanted = stamped(settled_template(manifest, there))
    fields = changes(wanted, there)
    if not fields:
        return None
    write = Apply(
        manifest=wanted,
        reason=Reason.CREATED if there is None else Reason.UPDATED,
        message=_created(manifest) if there is None else _updated(manifest, fields),
        takes_over=there is not None and there.has_others,
    )
    return Missing(write, _told(fields))


def bindings_last(writes: Iterable[Action]) -> tuple[list[Action], list[Action]]:
    """Two stages: the API server looks at a Role when somebody binds it."""
    first: list[Action] = []
    bindings: list[Action] = []
    for one in writes:
        is_binding = isinstance(one, Apply) and kinds.kind_of(one.manifest) == kinds.ROLE_BINDING
        (bindings if is_binding else first).append(one)
    return first, bindings


def before_writing(writes: Iterable[Action], live: Live) -> list[PatchObject]:
    """What has to be said before these writes: a workload that is replaced otherwise is rolled no more.

    The API server gives a `rollingUpdate` to everything without a strategy. It cannot stand beside another
    type, and an apply only takes away what the same applier wrote.
    """
    return [
        PatchObject(
            kind=kind,
            key=ObjectKey(there.metadata.namespace, there.metadata.name),
            uid=there.metadata.uid,
            operations=({"op": "replace", "path": f"/spec/{field}", "value": wanted},),
            reason=Reason.UPDATED,
            message=f"{kind.kind} {there.metadata.name} is no longer rolled: {wanted['type']}",
        )
        for kind, manifest, there in _changed_workloads(writes, live)
        for field in ("strategy", "updateStrategy")
        if (wanted := manifest["spec"].get(field) or {}).get("type", ROLLED) != ROLLED
        and "rollingUpdate" in there.body["spec"].get(field, {})
    ]


def _changed_workloads(writes: Iterable[Action], live: Live) -> Iterator[tuple[Kind, Manifest, Child]]:
    """Deployments and StatefulSets that there are and that are about to change."""
    for write in writes:
        kind = kinds.kind_of(write.manifest) if isinstance(write, Apply) else None
        if isinstance(write, Apply) and kind in (kinds.DEPLOYMENT, kinds.STATEFUL_SET):
            metadata = write.manifest["metadata"]
            there = live(kind, metadata["namespace"], metadata["name"])
            if there is not None:
                yield kind, write.manifest, there


def missing_secret(manifest: Manifest, live: Secret | Unread | None) -> Apply | None:
    """An Apply for a Secret of ours that is absent, lacks something, or whose values somebody edited.

    Its values are unknown to us, then and now; digests tell whether they are the ones that we wrote.
    """
    if isinstance(live, Unread):
        return None
    if live is None:
        return missing_write(manifest, lambda kind, namespace, name: None)
    wanted = stamped(manifest)
    seen = Child(metadata=live.metadata, body={**manifest, "metadata": wire.plain(live.metadata)})
    fields = changes(wanted, seen)
    if live.metadata.annotations.get(CONTENT_DIGEST) != content_digest(live.digests, manifest["stringData"]):
        fields.append("data")
    if not fields or live.metadata.is_terminating:
        return None
    return Apply(manifest=wanted, reason=Reason.UPDATED, message=_updated(manifest, fields))


def taken(desired: Iterable[Manifest], live: Live) -> list[Wait]:
    """A word for each name under which another object of ours has something already."""
    return [wait for manifest in desired if (wait := _taken(manifest, live)) is not None]


def _taken(manifest: Manifest, live: Live) -> Wait | None:
    kind, metadata = kinds.kind_of(manifest), manifest["metadata"]
    there = live(kind, metadata["namespace"], metadata["name"])
    other = _of_another(metadata, there) if there is not None else None
    if other is None:
        return None
    message = (
        f"{kind.kind} {metadata['name']!r} belongs to {other.kind} {other.name!r}, so it is left as it is. "
        "Create this object again with another name in spec.children.names."
    )
    return Wait(subject=f"{kind.kind} {metadata['name']}", reason=Reason.NAME_TAKEN, message=message)


def _of_another(metadata: Manifest, there: Child) -> OwnerReference | None:
    """Whose it is, if not ours. An object of our name that was deleted and made again is the same to us."""
    other = there.metadata.owner
    ours = {(ref["kind"], ref["name"]) for ref in metadata.get("ownerReferences") or ()}
    return other if other is not None and ours and (other.kind, other.name) not in ours else None


def _created(manifest: Manifest) -> str:
    return f"created {manifest['kind']} {manifest['metadata']['name']}"


def _updated(manifest: Manifest, fields: list[str]) -> str:
    return f"updated {manifest['kind']} {manifest['metadata']['name']}: {_told(fields)}"


def _told(fields: list[str]) -> str:
    telling = [field for field in fields if not field.startswith("metadata.annotations.slinky")] or fields
    return first_few(telling, FIELDS_TOLD)


def surplus(kind: Kind, there: Iterable[Child], desired: Iterable[Manifest], why: str) -> list[DeleteObject]:
    """A delete for each of our objects of this kind that is no longer wanted."""
    wanted = {m["metadata"]["name"] for m in desired if kinds.kind_of(m) == kind}
    return [
        DeleteObject(
            kind=kind,
            key=ObjectKey(child.metadata.namespace, child.metadata.name),
            uid=child.metadata.uid,
            reason=Reason.DELETED,
            message=f"deleted {kind.kind} {child.metadata.name}: {why}",
        )
        for child in there
        if child.metadata.name not in wanted and not child.metadata.is_terminating
    ]
