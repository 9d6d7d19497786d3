"""What a reconciler may look at: everything we know. Read-only, in memory, never awaits."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeVar

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
from slurm_operator.manifests.storage import StorageUse
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

T = TypeVar("T", bound=HasMeta)


class Protection(StrEnum):
    """Whether a policy of the API server keeps workers from being deleted by hand."""

    NOT_LOOKED = ""  # Not yet, since we started.
    PROTECTED = "Protected"
    UNPROTECTED = "Unprotected"  # There is none.
    UNKNOWN = "Unknown"  # We may not look.


# The index of pods by the uid of who owns them; what nobody owns is under NOBODY.
OWNER = "owner"
NOBODY = ""
# The index of pods by `namespace/name` of who owns them, whether that is there or not.
OWNER_NAME = "owner name"
# The index of pods by the Kubernetes node that has them.
KUBE_NODE_NAME = "kube node name"


class World(Protocol):
    """One consistent view for one pass. What is asked for by name is watched from then on."""

    @property
    def now(self) -> datetime:
        """When this view was taken."""
        ...

    @property
    def protection(self) -> Protection:
        """Whether a policy keeps workers from being deleted by hand, as far as we may see that."""
        ...

    def get(self, type_: type[T], namespace: str, name: str) -> T | None:
        """One object of a watched type; None when there is none."""
        ...

    def all(self, type_: type[T], namespace: str = "") -> Sequence[T]:
        """Every object of a watched type, in one namespace or in all, sorted by name."""
        ...

    def unreadable(self, type_: type[T], namespace: str) -> Sequence[str]:
        """The names of objects of a watched type that are there and do not decode, sorted."""
        ...

    def find(self, type_: type[T], index: str, value: str) -> Sequence[T]:
        """The objects of a watched type that an index lists under `value`, sorted by name."""
        ...

    def child(self, kind: Kind, namespace: str, name: str) -> Child | None:
        """An object of our own making, whole."""
        ...

    def children(self, kind: Kind, owner_uid: str) -> Sequence[Child]:
        """Our own objects of one kind that this owner manages."""
        ...

    def secret(self, namespace: str, name: str) -> Secret | Unread | None:
        """A referenced Secret, without its values."""
        ...

    def config_map(self, namespace: str, name: str) -> ConfigMap | Unread | None:
        """A referenced ConfigMap."""
        ...

    def revision(self, namespace: str, name: str) -> Child | Unread | None:
        """A ControllerRevision by its name: one of the Slinky operator has no label that we watch for."""
        ...

    def slurm(self, namespace: str, controller: str) -> Snapshot | Unreachable:
        """What is known of the Slurm cluster behind a Controller, or why nothing is."""
        ...

    def job_end(self, namespace: str, controller: str, job_id: int) -> Sequence[EndedJob] | Unread:
        """How a Slurm job ended, or each task of an array, by slurmctld or by accounting.

        Nothing where both have no record of it. Unread where nobody can tell: it has not ended, or cannot be
        asked.
        """
        ...

    def storage(self, pod_uid: str) -> StorageUse | None:
        """How much local storage a worker's pod uses, as last read; None where nobody looked, or can."""
        ...

    def serves(self, kind: Kind) -> bool:
        """Whether this Kubernetes has an optional kind, such as ServiceMonitor, and we may use it."""
        ...
