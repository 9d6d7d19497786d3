"""Pods of the Kubernetes node: which stay, which are asked to leave, and what they are to a Slurm cluster."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.nebius.node_conditions import DRAIN_TAINT
from slurm_operator.api.shared import belonging, names
from slurm_operator.manifests.meta import Meta
from slurm_operator.manifests.objects import PodStatus

_MIRROR: Final = "kubernetes.io/config.mirror"
_DAEMON_SET: Final = "DaemonSet"

# Without these, nobody can see whether the jobs of workers have ended.
_SLURMCTLD, _SLURMD = "slurmctld", "slurmd"
_SERVES_SLURM: Final = frozenset({_SLURMCTLD, "slurmrestd", "slurmdbd"})
_SOPERATOR_DAEMONS: Final = {"controller": _SLURMCTLD, "rest": "slurmrestd", "accounting": "slurmdbd"}


class _Spec(wire.CamelRecord):
    node_name: str = ""
    tolerations: tuple[dict[str, Any], ...] | None = None


class Pod(wire.CamelRecord):
    metadata: Meta
    spec: _Spec = _Spec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def has_ended(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_ready(self) -> bool:
        ready = self.status.condition("Ready")
        return ready is not None and ready.status == "True"

    @property
    def daemon(self) -> str:
        """Which daemon of Slurm it runs; empty for others."""
        labels = self.metadata.labels
        if labels.get(nebius_names.CONTROLLER_TYPE) == "main":
            return _SLURMCTLD
        if labels.get(nebius_names.WORKER) == "true":
            return _SLURMD
        if names.LABEL_PART not in labels and labels.get(names.APP_NAME) == "slurmcluster":
            return _SOPERATOR_DAEMONS.get(labels.get(names.APP_COMPONENT, ""), "")
        return belonging.daemon_of(labels)

    @property
    def cluster(self) -> str:
        """The Slurm cluster that slurmctld or a worker is of."""
        labels = self.metadata.labels
        return labels.get(names.LABEL_CLUSTER) or belonging.owner_of(labels)

    @property
    def is_protected(self) -> bool:
        """Jobs may run in it: the operator takes the label away with a proof that none do."""
        return self.metadata.labels.get(names.LABEL_POD_PROTECT) == "true"

    @property
    def is_worker(self) -> bool:
        return self.daemon == _SLURMD or self.is_protected

    @property
    def is_slurmctld(self) -> bool:
        return self.daemon == _SLURMCTLD

    @property
    def serves_slurm(self) -> bool:
        return self.daemon in _SERVES_SLURM

    @property
    def stays(self) -> bool:
        """Whether the node counts as empty with it. A worker never stays, whatever it tolerates."""
        if self.has_ended or _MIRROR in self.metadata.annotations:
            return True
        if self.is_worker or self.is_slurmctld:
            return False
        owner = self.metadata.owner
        return (owner is not None and owner.kind == _DAEMON_SET) or any(
            _tolerates(one) for one in self.spec.tolerations or ()
        )


def _tolerates(toleration: dict[str, Any]) -> bool:
    """Whether the taint of a drained node would leave a pod with it where it is, for as long as it likes."""
    if toleration.get("effect") not in (None, "", "NoExecute") or "tolerationSeconds" in toleration:
        return False
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if operator == "Exists":
        return key in ("", DRAIN_TAINT)
    return key == DRAIN_TAINT and toleration.get("value") == "true"


def remaining(pods: Iterable[Pod]) -> list[Pod]:
    """Those that have to leave before the node is empty, in the order of their names."""
    return sorted((pod for pod in pods if not pod.stays), key=lambda pod: pod.name)


def due(pods: Sequence[Pod]) -> list[Pod]:
    """Those that may be evicted now. A protected worker is not: a missing budget must not end its jobs.

    Nor is what shows the jobs of workers, while some are left.
    """
    has_workers = any(pod.is_worker for pod in pods)
    waiting = (pod for pod in pods if not pod.metadata.is_terminating and not pod.is_protected)
    return [pod for pod in waiting if not (has_workers and pod.serves_slurm)]


def dependents(slurmctld: Pod, others: Iterable[Pod]) -> list[Pod]:
    """Workers of its cluster, unless another slurmctld is ready elsewhere to take over."""
    same = [
        pod
        for pod in others
        if pod.metadata.namespace == slurmctld.metadata.namespace
        and pod.cluster == slurmctld.cluster
        and not pod.has_ended
    ]
    is_elsewhere = any(
        pod.is_slurmctld and pod.is_ready and pod.spec.node_name != slurmctld.spec.node_name for pod in same
    )
    return [] if is_elsewhere else [pod for pod in same if pod.is_worker]
