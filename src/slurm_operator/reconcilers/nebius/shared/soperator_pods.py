"""Pods that Soperator left running: slurmctld, login pods and workers, made by StatefulSets of Kruise.

They have the names of what the parts would make, and jobs depend on them. Whether their templates, records
and files can be kept is not known, so nothing of the cluster is changed while one of them runs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.shared import names as shared_names
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.world import OWNER_NAME, World
from slurm_operator.reconcilers.nebius.shared.objects import APP

RUNNING: Final = "SoperatorPodsRunning"
KRUISE: Final = "apps.kruise.io"

# Older releases gave these StatefulSets no name of the cluster; pods say by a label whose they are.
_WITHOUT_PREFIX: Final = ("controller", "login", names.OLDER_WORKERS)


def soperator_pods(cluster: str, namespace: str, nodesets: Iterable[str], world: World) -> tuple[Pod, ...]:
    """Those of this cluster that have not ended."""
    workloads = {names.controller(cluster), names.login(cluster), *_WITHOUT_PREFIX, *nodesets}
    found = (pod for name in sorted(workloads) for pod in world.find(Pod, OWNER_NAME, f"{namespace}/{name}"))
    return tuple(pod for pod in found if is_soperators(pod) and _cluster_of(pod) == cluster)


def is_soperators(pod: Pod) -> bool:
    """Made by a StatefulSet of Kruise, and not ended."""
    return _is_of_kruise(pod) and not pod.has_ended


def clusters_with(pod: Pod) -> Iterator[str]:
    """The SlurmCluster that such a pod belongs to, also when it has ended."""
    if _is_of_kruise(pod):
        yield _cluster_of(pod)


def _is_of_kruise(pod: Pod) -> bool:
    owner = pod.metadata.owner
    return (
        pod.metadata.labels.get(shared_names.APP_NAME) == APP and owner is not None and owner.group == KRUISE
    )


def _cluster_of(pod: Pod) -> str:
    return pod.metadata.labels.get(shared_names.APP_INSTANCE, "")


def held(cluster: str, pods: Iterable[Pod]) -> Wait:
    counts = Counter(_workload(pod) for pod in pods)
    told = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
    message = (
        f"Pods that Soperator made still run SlurmCluster {cluster!r}: {told}. Nothing of the cluster is "
        "changed, so that no job is lost. This operator cannot take such pods over. When all jobs are done, "
        "delete these StatefulSets; then it starts the cluster."
    )
    return Wait(subject=f"SlurmCluster {cluster}", reason=RUNNING, message=message)


def _workload(pod: Pod) -> str:
    assert pod.metadata.owner is not None
    return f"StatefulSet {pod.metadata.owner.name}"
