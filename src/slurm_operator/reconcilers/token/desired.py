"""The Secret of a Token, without the token itself: that is put in while writing."""

from datetime import datetime

from slurm_operator.api.shared import names
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.token.observe import EXPIRES_AT, ISSUED_AT, KEY_DIGEST, USERNAME, Seen


def secret(seen: Seen, issued_at: datetime) -> Manifest:
    """Everything but the value. Without refreshing it is immutable: nobody changes it, not even we."""
    token, meta = seen.token, seen.token.metadata
    assert seen.key is not None
    notes = {
        ISSUED_AT: issued_at.isoformat(),
        EXPIRES_AT: (issued_at + seen.lifetime).isoformat(),
        USERNAME: token.spec.username,
        KEY_DIGEST: seen.key.digest,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": seen.token.secret_name,
            "namespace": meta.namespace,
            "labels": {**meta.labels, names.APP_NAME: "token", names.APP_INSTANCE: meta.name},
            "annotations": {**foreign_annotations(meta.annotations), **notes},
            "ownerReferences": [owner_reference(token.KIND, meta)],
        },
        "type": "Opaque",
        "immutable": not token.spec.refresh,
    }


def foreign_annotations(annotations: dict[str, str]) -> dict[str, str]:
    """What the Token's owner wrote on it, without what tools note for themselves."""
    return {key: value for key, value in annotations.items() if not key.startswith("kubectl.kubernetes.io/")}
