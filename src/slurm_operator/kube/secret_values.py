"""Secrets: facts for decisions, and values only for the moment of writing."""

import hashlib
from collections.abc import Mapping

from slurm_operator import wire
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.manifests.kinds import SECRET
from slurm_operator.manifests.objects import Secret


class _SecretBody(wire.CamelRecord):
    metadata: Meta
    data: dict[str, bytes] | None = None  # Decoded from base64.
    immutable: bool = False


_decode_body = wire.decoder(_SecretBody)


def decode_secret(body: memoryview) -> Secret:
    """The facts of a Secret; its values are digested here and kept nowhere."""
    secret = _decode_body(body)
    digests = {key: value_digest(value) for key, value in (secret.data or {}).items()}
    return Secret(metadata=secret.metadata, digests=digests, immutable=secret.immutable)


async def read_secret(client: Client, key: ObjectKey) -> Mapping[str, bytes]:
    """The values of a Secret, fresh from the server: for the moment of writing, never to be kept."""
    return (await client.read(SECRET, key, _decode_body)).data or {}


def value_digest(value: bytes) -> str:
    """What `Secret.digests` holds for a value: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(value).hexdigest()[:16]
