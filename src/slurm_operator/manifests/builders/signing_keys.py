"""Copies of the signing keys by which a slurmctld may know our tokens.

Somebody who deletes a whole release deletes its Secrets first, and without a key nobody can ask Slurm whether
the workers are free. And when the user changes the signing key, a slurmctld without a volume goes on with the
one that it has read, which the user's Secret no longer has.

No owner reference: a deletion in the foreground would take the copies along before the last worker has gone.
"""

from collections.abc import Iterable, Iterator

from slurm_operator import wire
from slurm_operator.manifests.builders.key_ring import SIGNS
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.manifests.secrets import SecretHandle

_PREFIX = "key-"


def kept(copies: Secret | Unread | None) -> tuple[str, ...]:
    """The digests of the keys that there are copies of, sorted."""
    entries = copies.digests if isinstance(copies, Secret) else {}
    return tuple(sorted(entry.removeprefix(_PREFIX) for entry in entries if entry.startswith(_PREFIX)))


def current(copies: Secret | Unread | None) -> str:
    """The digest of the key that was in the user's Secret last; empty when there is no copy of it."""
    noted = copies.metadata.annotations.get(SIGNS, "") if isinstance(copies, Secret) else ""
    return noted if noted in kept(copies) else ""


def in_order(copies: Secret | Unread | None) -> Iterator[SecretHandle]:
    """All copies, the current key first."""
    if isinstance(copies, Secret):
        newest = current(copies)
        for key in sorted(kept(copies), key=lambda one: (one != newest, one)):
            yield copy_of(key, copies)


def copy_of(key: str, copies: Secret) -> SecretHandle:
    """Where the copy of a key is: as base64url, since a key may be any bytes."""
    meta, entry = copies.metadata, f"{_PREFIX}{key}"
    return SecretHandle(
        namespace=meta.namespace, name=meta.name, key=entry, digest=copies.digests[entry], form="base64url"
    )


def manifest(name: str, source: SecretHandle, others: Iterable[str] = ()) -> Manifest:
    """The Secret with copies of the user's key and of those others that it has already."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": source.namespace,
            # Not those of the Controller: tools that copy Secrets to other places choose them by labels.
            "labels": {"app.kubernetes.io/managed-by": "slurm-operator"},
            "annotations": {SIGNS: source.digest},
        },
        "type": "Opaque",
        "stringData": {
            f"{_PREFIX}{key}": _value(key, source, name).mark for key in sorted({source.digest, *others})
        },
    }


def _value(key: str, source: SecretHandle, name: str) -> SecretHandle:
    if key == source.digest:
        return wire.replace(source, form="base64url")
    return SecretHandle(namespace=source.namespace, name=name, key=f"{_PREFIX}{key}")
