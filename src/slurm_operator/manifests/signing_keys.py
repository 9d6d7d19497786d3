"""Copies of the keys by which a slurmctld without a volume may know our tokens.

When the user changes the signing key, slurmctld goes on with the one that it has read, and only slurmctld
knows whether jobs would be lost if it were replaced now. So whoever asks it needs the key before, which the
user's Secret no longer has.
"""

from collections.abc import Iterable

from slurm_operator import wire
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.secrets import SecretHandle

_PREFIX = "key-"


def kept(copies: Secret | Unread | None) -> tuple[str, ...]:
    """The digests of the keys that there are copies of, sorted."""
    entries = copies.digests if isinstance(copies, Secret) else {}
    return tuple(sorted(entry.removeprefix(_PREFIX) for entry in entries if entry.startswith(_PREFIX)))


def copy_of(key: str, copies: Secret) -> SecretHandle:
    """Where the copy of a key is: as base64url, since a key may be any bytes."""
    meta, entry = copies.metadata, f"{_PREFIX}{key}"
    return SecretHandle(
        namespace=meta.namespace, name=meta.name, key=entry, digest=copies.digests[entry], form="base64url"
    )


def manifest(metadata: Manifest, source: SecretHandle, keys: Iterable[str]) -> Manifest:
    """The Secret with copies of the user's key and of those others that it has already."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": {f"{_PREFIX}{key}": _value(key, source, metadata["name"]).mark for key in sorted(keys)},
    }


def _value(key: str, source: SecretHandle, name: str) -> SecretHandle:
    if key == source.digest:
        return wire.replace(source, form="base64url")
    return SecretHandle(namespace=source.namespace, name=name, key=f"{_PREFIX}{key}")
