"""Copies of the signing key: with them Slurm can be asked when the user's Secret is gone or has a new key.

A slurmctld with a volume is restarted with the new key. One without must be asked for its jobs
before, by somebody with the key that it has: so a key is copied before slurmctld is started with it, and the
copy stays until another one is in its place.
"""

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.builders import signing_keys
from slurm_operator.manifests.objects import Unread
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Action
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.reconcilers.shared.children import missing_secret
from slurm_operator.slurm.snapshot import Snapshot

# Somebody who changes the key again and again while jobs run is not followed without end.
MOST_KEPT = 8


def is_copied(seen: Seen) -> bool:
    """Whether slurmctld may be started with the key that there is. An unreadable copy is no reason not to."""
    spec = seen.controller.spec
    if spec.persistence.enabled or spec.external or isinstance(seen.signing_copies, Unread):
        return True
    return seen.signing_key.digest in signing_keys.kept(seen.signing_copies)


def copies(seen: Seen) -> list[Action]:
    """The write that copies a new key. Those before it go when every slurmctld was started with it."""
    digest = seen.signing_key.digest or _remembered(seen)
    if not _is_used(seen) or not digest:
        return []
    there = [one for one in signing_keys.kept(seen.signing_copies) if one != digest]
    former = [] if _is_everywhere(seen, digest) else there[: MOST_KEPT - 1]
    manifest = signing_keys.manifest(names.signing_copies(seen.name), _source(seen, digest), former)
    write = missing_secret(manifest, seen.signing_copies)
    return [wire.replace(write, is_housekeeping=True)] if write is not None else []


def _is_used(seen: Seen) -> bool:
    """We sign with it to ask slurmrestd; and a slurmctld without a volume is not started before we could."""
    spec = seen.controller.spec
    return seen.has_restapi or not (spec.external or spec.persistence.enabled)


def _source(seen: Seen, digest: str) -> SecretHandle:
    ref = seen.signing_key.ref
    return SecretHandle(namespace=seen.namespace, name=ref.name, key=ref.key, digest=digest)


def _remembered(seen: Seen) -> str:
    """The key that slurmctld has, when all Secrets with it were deleted and Slurm is still being asked.

    Whoever asks it has the key in memory, and the copy is written again from there.
    """
    if seen.signing_copies is not None or not isinstance(seen.slurm, Snapshot):
        return ""
    return next(iter(_started_with(seen)), "")


def _is_everywhere(seen: Seen, digest: str) -> bool:
    started = _started_with(seen)
    if seen.controller.spec.external:
        return True
    return bool(started) and all(one == digest for one in started)


def _started_with(seen: Seen) -> list[str]:
    return [pod.metadata.annotations.get(names.JWT_KEY_HASH, "") for pod in seen.pods]
