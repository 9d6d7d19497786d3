"""Copies of keys at the end of a Controller: they stand in for originals that are lost, and then go.

The ring has the Slurm key, another Secret the signing key, a third one that of munge. Pods mount the user's
Secrets. One that runs keeps its files when those are deleted, but a new one would wait for them without end,
and with it everybody who has to ask Slurm before a worker may go.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders import key_ring, signing_keys
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Action, DeleteObject, RestoreSecret
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.reconcilers.shared.children import missing_secret
from slurm_operator.slurm.snapshot import Unreachable

# A pod that was killed is back within this time if it lacks nothing.
MISSED_AFTER = timedelta(seconds=30)


def removals(seen: Seen) -> list[Action]:
    """Copies that nobody needs any more. Generated keys are no copies, and stay."""
    gone: list[Action] = []
    if isinstance(seen.signing_copies, Secret) and signing_keys.kept(seen.signing_copies):
        gone.append(_removal(seen.signing_copies))
    is_copy = isinstance(seen.munge_copy, Secret) and bool(signing_keys.kept(seen.munge_copy))
    if isinstance(seen.munge_copy, Secret) and is_copy and seen.is_last_with_key:
        gone.append(_removal(seen.munge_copy))
    is_ring = not seen.controller.spec.external and key_ring.ring_of(seen.ring) is not None
    if isinstance(seen.ring, Secret) and is_ring and seen.is_last_with_key:
        gone.append(_removal(seen.ring))
    return gone


def munge_copy(seen: Seen) -> list[Action]:
    """The write that copies munge's key."""
    key = seen.munge_key
    if key is None or not key.digest or seen.controller.spec.external:
        return []
    source = SecretHandle(namespace=seen.namespace, name=key.ref.name, key=key.ref.key, digest=key.digest)
    manifest = signing_keys.manifest(names.munge_copy(key.ref.name), source, [])
    write = missing_secret(manifest, seen.munge_copy)
    return [wire.replace(write, is_housekeeping=True)] if write is not None else []


def look_again(seen: Seen, now: datetime) -> timedelta | None:
    """When it will be clear that lost originals are missed."""
    if not seen.is_going or not isinstance(seen.slurm, Unreachable):
        return None
    return max(seen.slurm.since + MISSED_AFTER - now, timedelta(seconds=1)) if lost(seen) else None


def restored(seen: Seen, now: datetime) -> list[Action]:
    """The user's Secrets again, when Slurm cannot be asked without them; they go with the Controller.

    Not at once: whoever installs a release again, while the last one is being deleted, brings them.
    """
    if not seen.is_going or not isinstance(seen.slurm, Unreachable):
        return []
    if now < seen.slurm.since + MISSED_AFTER:
        return []
    return [_restored(seen, name, entries) for name, entries in lost(seen).items()]


def lost(seen: Seen) -> dict[str, dict[str, SecretHandle]]:
    """Secrets that are gone, and where copies of their entries are."""
    found: dict[str, dict[str, SecretHandle]] = {}
    for ref, copy in (
        *((seen.slurm_key.ref, copy) for copy in _slurm_key(seen) if seen.slurm_key.is_gone),
        *((seen.signing_key.ref, copy) for copy in _signing_key(seen) if seen.signing_key.is_gone),
        *_munge_key(seen),
    ):
        found.setdefault(ref.name, {})[ref.key] = copy
    return {name: entries for name, entries in found.items() if entries.keys() >= _entries(seen, name)}


def _entries(seen: Seen, name: str) -> set[str]:
    """What a Secret of this name must have: half of it would only hide that the rest is gone."""
    munge = [seen.munge_key.ref] if seen.munge_key is not None else []
    refs: tuple[SecretKey, ...] = (seen.slurm_key.ref, seen.signing_key.ref, *munge)
    return {ref.key for ref in refs if ref.name == name}


def _slurm_key(seen: Seen) -> Iterator[SecretHandle]:
    ring = key_ring.ring_of(seen.ring)
    if ring is not None and isinstance(seen.ring, Secret):
        yield key_ring.copy_in(seen.ring, ring.signs)


def _munge_key(seen: Seen) -> Iterator[tuple[SecretKey, SecretHandle]]:
    key = seen.munge_key
    if key is not None and key.is_gone and not isinstance(seen.munge_copy, Unread):
        yield from ((key.ref, copy) for copy in list(signing_keys.in_order(seen.munge_copy))[:1])


def _signing_key(seen: Seen) -> Iterator[SecretHandle]:
    if not isinstance(seen.signing_copies, Unread):
        yield from list(signing_keys.in_order(seen.signing_copies))[:1]


def _restored(seen: Seen, name: str, entries: dict[str, SecretHandle]) -> RestoreSecret:
    meta = seen.controller.metadata
    return RestoreSecret(
        manifest={
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": seen.namespace,
                "labels": {"app.kubernetes.io/managed-by": "slurm-operator"},
                "ownerReferences": [owner_reference(Controller.KIND, meta)],
            },
            "type": "Opaque",
        },
        entries=entries,
        reason=Reason.KEY_RESTORED,
        message=f"put Secret {name} back from a copy, until Controller {meta.name} is gone: "
        "without it no pod starts that could be asked for jobs",
    )


def _removal(secret: Secret) -> DeleteObject:
    name = secret.metadata.name
    return DeleteObject(
        kind=kinds.SECRET,
        key=key_of(secret),
        uid=secret.metadata.uid,
        reason=Reason.DELETED,
        message=f"deleted Secret {name}: its copies of keys are not needed any more",
        is_housekeeping=True,
    )
