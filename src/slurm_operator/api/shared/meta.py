"""What every Kubernetes object carries about itself."""

from datetime import datetime
from typing import NamedTuple, Protocol

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind


class OwnerReference(wire.CamelRecord):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def is_a(self, kind: Kind) -> bool:
        """Whether the owner is of this kind, in whatever version it was written: groups share names."""
        return self.kind == kind.kind and self.group == kind.group


class Meta(wire.CamelRecord):
    """`metadata` of any object, as far as we read it. Without `managedFields`: they are half of the bytes."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def is_terminating(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def owner(self) -> OwnerReference | None:
        """The one owner that manages this object."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class HasMeta(Protocol):
    """Anything that can live in a watch cache."""

    @property
    def metadata(self) -> Meta: ...


class ObjectKey(NamedTuple):
    """Where an object of a known kind lives; `namespace` is empty for cluster-wide kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(thing: HasMeta) -> ObjectKey:
    return ObjectKey(thing.metadata.namespace, thing.metadata.name)
