"""Objects as we write them, and our own children as we read them back."""

from collections.abc import Callable
from typing import Any

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta as HasMeta
from slurm_operator.api.shared.meta import Meta as Meta
from slurm_operator.api.shared.meta import ObjectKey as ObjectKey
from slurm_operator.api.shared.meta import OwnerReference as OwnerReference
from slurm_operator.api.shared.meta import key_of as key_of
from slurm_operator.manifests.managers import has_theirs

# An object we are about to write: plain JSON data, exactly the fields we want to own.
Manifest = dict[str, Any]


class Child(wire.Record):
    """An object of our own making, kept whole, so that what should be can be compared with what is."""

    metadata: Meta
    body: Manifest
    has_others: bool = False  # The Slinky operator wrote fields of it, which an apply leaves as they are.


class _JustMeta(wire.CamelRecord):
    metadata: Meta


_decode_meta = wire.decoder(_JustMeta)


def decode_of_owner(kind: Kind) -> Callable[[bytes | bytearray | memoryview], Child]:
    """Reads children of one kind of owner, and those that nobody owns: their owner may be created again.

    Of all others not more is read than that they are there.
    """

    def decode(data: bytes | bytearray | memoryview) -> Child:
        metadata = _decode_meta(data).metadata
        owners = metadata.owner_references
        may_be_ours = not owners or any(owner.is_a(kind) for owner in owners)
        return decode_child(data) if may_be_ours else Child(metadata=metadata, body={})

    return decode


def decode_child(data: bytes | bytearray | memoryview) -> Child:
    body = wire.decode_any(bytes(data))
    managed = body.get("metadata", {}).pop("managedFields", None) or ()
    return Child(metadata=_decode_meta(data).metadata, body=body, has_others=has_theirs(managed))
