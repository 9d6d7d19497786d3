"""How much of its local storage a pod uses."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api.nebius.amounts import amount

_RESOURCE: Final = "ephemeral-storage"


class StorageUse(wire.Record, tag="StorageUse"):
    """As its kubelet said at `read_at`, against the limits of all its containers."""

    used_bytes: int
    limit_bytes: int
    read_at: datetime

    @property
    def percent(self) -> float:
        return 100 * self.used_bytes / self.limit_bytes


def storage_limit(pod: Mapping[str, Any]) -> int:
    """The sum of what its containers may use; 0 where none has a limit."""
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    limits = [((one.get("resources") or {}).get("limits") or {}).get(_RESOURCE) for one in containers]
    return int(sum(amount(limit) or 0 for limit in limits if limit is not None))


class _PodRef(wire.CamelRecord):
    uid: str = ""


class _Used(wire.CamelRecord):
    used_bytes: int | None = None


class _PodStats(wire.CamelRecord):
    pod_ref: _PodRef = _PodRef()
    ephemeral_storage: _Used = wire.field(name=_RESOURCE, default=_Used())


class _Summary(wire.CamelRecord):
    pods: tuple[_PodStats, ...] = ()


def storage_used(summary: bytes) -> Iterator[tuple[str, int]]:
    """The uid of each pod in the summary of a kubelet, and how many bytes it uses. Raises DecodeError."""
    for pod in wire.decode(summary, _Summary).pods:
        if pod.ephemeral_storage.used_bytes is not None:
            yield pod.pod_ref.uid, pod.ephemeral_storage.used_bytes
