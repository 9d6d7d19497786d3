"""The signing key of a slurmctld that forgets its jobs: kept until another one is in its place.

A slurmctld with a volume is simply started anew with the new key. One without must be asked for its jobs
before, by somebody with the key that it has.
"""

from slurm_operator.api import names
from slurm_operator.manifests import signing_keys
from slurm_operator.manifests.objects import Unread
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Action
from slurm_operator.plan.children import missing_secret
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.reconcilers.controller.services import owner

# Somebody who changes the key again and again while jobs run is not followed without end.
MOST_KEPT = 8


def is_copied(seen: Seen) -> bool:
    """Whether slurmctld may be started with the key that there is. An unreadable copy is no reason not to."""
    if not _is_kept(seen) or isinstance(seen.signing_copies, Unread):
        return True
    return seen.signing_key.digest in signing_keys.kept(seen.signing_copies)


def copies(seen: Seen) -> list[Action]:
    """The write that copies a new key. Those before it go when every slurmctld was started with it."""
    key = seen.signing_key
    if not _is_kept(seen) or not key.digest:
        return []
    there = [one for one in signing_keys.kept(seen.signing_copies) if one != key.digest]
    former = [] if _is_everywhere(seen) else there[: MOST_KEPT - 1]
    source = SecretHandle(namespace=seen.namespace, name=key.ref.name, key=key.ref.key, digest=key.digest)
    metadata = owner(seen.controller).metadata(names.signing_copies(seen.name))
    write = missing_secret(
        signing_keys.manifest(metadata, source, [key.digest, *former]), seen.signing_copies
    )
    return [write] if write is not None else []


def _is_kept(seen: Seen) -> bool:
    """Whether slurmctld is ours, and must be asked before it is replaced."""
    spec = seen.controller.spec
    return not spec.persistence.enabled and not spec.external


def _is_everywhere(seen: Seen) -> bool:
    wanted = seen.signing_key.digest
    started = [pod.metadata.annotations.get(names.JWT_KEY_HASH) for pod in seen.pods]
    return bool(started) and all(one == wanted for one in started)
