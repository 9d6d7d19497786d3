"""From objects that should exist to the writes that are missing."""

from collections.abc import Callable, Iterable, Mapping

from slurm_operator import wire
from slurm_operator.api import names
from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare import changes, settled_template, stamped
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import Pod, Secret, Unread
from slurm_operator.manifests.secrets import CONTENT_DIGEST, content_digest
from slurm_operator.plan.actions import Apply, DeleteObject
from slurm_operator.plan.world import World

Live = Callable[[Kind, str, str], Child | None]

# How many fields a message names before it says "and so many more".
FIELDS_TOLD = 3


def seen_children(world: World, namespace: str, *wanted: tuple[Kind, str]) -> dict[tuple[Kind, str], Child]:
    """Those of the named objects that there are, to be looked at when deciding."""
    found = {(kind, name): world.child(kind, namespace, name) for kind, name in wanted}
    return {key: child for key, child in found.items() if child is not None}


def seen_pods(world: World, namespace: str, app: str, instance: str) -> list[Pod]:
    """The pods of one of our objects."""
    wanted = {names.APP_NAME: app, names.APP_INSTANCE: instance}
    return [pod for pod in world.all(Pod, namespace) if wanted.items() <= pod.metadata.labels.items()]


def missing_among(desired: Iterable[Manifest], children: Mapping[tuple[Kind, str], Child]) -> list[Apply]:
    """As `missing_writes`, for children that were chosen while observing."""
    return missing_writes(desired, lambda kind, namespace, name: children.get((kind, name)))


def missing_writes(desired: Iterable[Manifest], live: Live) -> list[Apply]:
    """An Apply for each object that is absent or lacks something, with what in its message."""
    return [write for manifest in desired if (write := missing_write(manifest, live)) is not None]


def missing_write(manifest: Manifest, live: Live) -> Apply | None:
    metadata = manifest["metadata"]
    there = live(kinds.kind_of(manifest), metadata["namespace"], metadata["name"])
    if there is not None and there.metadata.is_terminating:
        return None  # Its successor is made when it is gone.
    wanted = stamped(settled_template(manifest, there))
    fields = changes(wanted, there)
    if not fields:
        return None
    reason = "Created" if there is None else "Updated"
    return Apply(manifest=wanted, reason=reason, message=_told(reason, manifest, fields))


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
    return Apply(manifest=wanted, reason="Updated", message=_told("Updated", manifest, fields))


def _told(reason: str, manifest: Manifest, fields: list[str]) -> str:
    name = f"{manifest['kind']} {manifest['metadata']['name']}"
    if reason == "Created":
        return f"created {name}"
    telling = [field for field in fields if not field.startswith("metadata.annotations.slinky")] or fields
    more = len(telling) - FIELDS_TOLD
    return f"updated {name}: {', '.join(telling[:FIELDS_TOLD])}" + (f" and {more} more" if more > 0 else "")


def surplus(kind: Kind, there: Iterable[Child], desired: Iterable[Manifest], why: str) -> list[DeleteObject]:
    """A delete for each of our objects of this kind that is no longer wanted."""
    wanted = {m["metadata"]["name"] for m in desired if kinds.kind_of(m) == kind}
    return [
        DeleteObject(
            kind=kind,
            key=ObjectKey(child.metadata.namespace, child.metadata.name),
            uid=child.metadata.uid,
            reason="Deleted",
            message=f"deleted {kind.kind} {child.metadata.name}: {why}",
        )
        for child in there
        if child.metadata.name not in wanted and not child.metadata.is_terminating
    ]
