"""Who takes an object along when it goes."""

from slurm_operator.api.schema.kind import Kind
from slurm_operator.manifests.meta import Manifest, Meta


def owner_reference(kind: Kind, meta: Meta, *, controller: bool = True) -> Manifest:
    """A reference to put on a child: it is collected after its owner, and wakes it when it changes."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": controller,
        "blockOwnerDeletion": True,
    }
