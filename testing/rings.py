"""Key rings and other Secrets of ours as they are after they were applied."""

from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import Meta
from slurm_operator.manifests.builders import key_ring
from slurm_operator.manifests.builders.key_ring import Ring
from slurm_operator.manifests.compare.differences import stamped
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Secret
from slurm_operator.manifests.secrets import CONTENT_DIGEST, SecretHandle, content_digest


def ring_secret(namespace: str, key_secret: str, ring: Ring) -> Secret:
    """The ring beside the Secret of a Slurm key."""
    source = SecretHandle(namespace=namespace, name=key_secret, key="slurm.key", digest=ring.keys[0])
    return applied_secret(stamped(key_ring.manifest(source, ring)))


def applied_secret(manifest: Manifest) -> Secret:
    """A Secret of ours as decisions see it once it was written."""
    meta = manifest["metadata"]
    digests = {entry: digest(text) for entry, text in manifest["stringData"].items()}
    notes = {**meta.get("annotations", {}), CONTENT_DIGEST: content_digest(digests, digests)}
    found = codec.read(Meta, {**meta, "annotations": notes})
    return Secret(metadata=found, digests=digests)
