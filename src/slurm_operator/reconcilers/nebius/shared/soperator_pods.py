"""Pods that Soperator left running: slurmctld, login pods and workers, made by StatefulSets of Kruise.

They have the names of what the parts would make, and jobs depend on them. Which of their templates, records and
files could be kept is not known, so nothing of the cluster is changed while one of them runs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.shared import names as shared_names
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.world import NOBODY, OWNER, OWNER_NAME, World
from slurm_operator.reconcilers.nebius.shared.objects import APP

RUNNING: Final = "SoperatorPodsRunning"
GUIDE: Final = "docs/guides/from-soperator.md"
KRUISE: Final = "apps.kruise.io"

# Older releases gave these StatefulSets no name of the cluster; pods say by a label whose they are.
_WITHOUT_PREFIX: Final = ("controller", "login", names.OLDER_WORKERS)
_COMPONENTS: Final = ("controller", "login", "nodeset", "worker")


def soperator_pods(cluster: str, namespace: str, nodesets: Iterable[str], world: World) -> tuple[Pod, ...]:
    """Those of this cluster that have not ended, whether or not their StatefulSet is still there."""
    workloads = {names.controller(cluster), names.login(cluster), *_WITHOUT_PREFIX, *nodesets}
    found = [
        *(pod for name in sorted(workloads) for pod in world.find(Pod, OWNER_NAME, f"{namespace}/{name}")),
        *(pod for pod in world.find(Pod, OWNER, NOBODY) if pod.metadata.namespace == namespace),
    ]
    return tuple(pod for pod in found if is_soperators(pod) and _cluster_of(pod) == cluster)


def is_soperators(pod: Pod) -> bool:
    """A pod of a StatefulSet of Kruise, or one that such a StatefulSet left without an owner."""
    labels, owner = pod.metadata.labels, pod.metadata.owner
    if pod.has_ended or labels.get(shared_names.APP_NAME) != APP:
        return False
    if owner is not None:
        return owner.group == KRUISE
    is_ours = shared_names.LABEL_PART in labels
    return not is_ours and labels.get(shared_names.APP_COMPONENT) in _COMPONENTS


def clusters_with(pod: Pod) -> Iterator[str]:
    """The SlurmCluster that such a pod belongs to."""
    labels = pod.metadata.labels
    if labels.get(shared_names.APP_NAME) == APP and labels.get(shared_names.APP_COMPONENT) in _COMPONENTS:
        yield _cluster_of(pod)


def _cluster_of(pod: Pod) -> str:
    return pod.metadata.labels.get(shared_names.APP_INSTANCE, "")


def held(cluster: str, pods: Iterable[Pod]) -> Wait:
    counts = Counter(_workload(pod) for pod in pods)
    told = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
    message = (
        f"Pods that Soperator made still run SlurmCluster {cluster!r}: {told}. Nothing of the cluster is changed, "
        "so that no job is lost. This operator cannot take such pods over. When all jobs are done, delete their "
        f"StatefulSets, and it goes on; see {GUIDE}."
    )
    return Wait(subject=f"SlurmCluster {cluster}", reason=RUNNING, message=message)


def _workload(pod: Pod) -> str:
    owner = pod.metadata.owner
    return f"StatefulSet {owner.name}" if owner is not None else "without an owner"
