"""What Soperator left running: slurmctld, login pods and workers of Kruise's StatefulSets, and Deployments.

They have the names of what the parts would make, and jobs depend on them. Unless a person asks for their
workers to be taken over, nothing of the cluster is changed while one of them runs, or something is there that
makes them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.shared import names as shared_names
from slurm_operator.api.shared.meta import Meta
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.world import OWNER_NAME, World
from slurm_operator.reconcilers.nebius.shared.objects import APP
from slurm_operator.reconcilers.shared.parts import is_owned

RUNNING: Final = Reason.SOPERATOR_PODS_RUNNING
KRUISE: Final = "apps.kruise.io"

# NodeSets are not told when a Deployment is deleted, or a StatefulSet of another NodeSet.
LOOK_AGAIN: Final = timedelta(seconds=5)

# Older releases gave these StatefulSets no name of the cluster; pods say by a label whose they are.
_LOGIN: Final = "login"
_WITHOUT_PREFIX: Final = ("controller", _LOGIN, names.OLDER_WORKERS)


@dataclass(frozen=True)
class Remains:
    """Of one cluster: pods that have not ended, and the names of what makes pods."""

    pods: tuple[Pod, ...] = ()
    stateful_sets: tuple[str, ...] = ()
    deployments: tuple[str, ...] = ()

    @property
    def are_there(self) -> bool:
        return bool(self.pods or self.stateful_sets or self.deployments)

    @property
    def told(self) -> str:
        """What makes pods by name, with how many it has."""
        counts = Counter(dict.fromkeys(self.stateful_sets, 0))
        counts.update(_workload(pod) for pod in self.pods)
        there = [f"StatefulSet {name} ({count})" for name, count in sorted(counts.items())]
        return ", ".join([*there, *(f"Deployment {name}" for name in self.deployments)])

    @property
    def workloads(self) -> set[str]:
        """The StatefulSets, also those that only their pods tell of."""
        return {*self.stateful_sets, *map(_workload, self.pods)}

    def of_login(self, cluster: str) -> "Remains":
        """Those of them that people log in to."""
        return self._of(self.workloads & {names.login(cluster), _LOGIN})

    def without_login(self, cluster: str) -> "Remains":
        others = self._of(self.workloads - {names.login(cluster), _LOGIN})
        return replace(others, deployments=self.deployments)

    def _of(self, workloads: Collection[str]) -> "Remains":
        return Remains(
            pods=tuple(pod for pod in self.pods if _workload(pod) in workloads),
            stateful_sets=tuple(name for name in self.stateful_sets if name in workloads),
        )


def remains(cluster: Meta, nodesets: Iterable[str], world: World) -> Remains:
    workloads = sorted(
        {names.controller(cluster.name), names.login(cluster.name), *_WITHOUT_PREFIX, *nodesets}
    )
    return Remains(
        pods=tuple(_pods(cluster, workloads, world)),
        stateful_sets=tuple(_stateful_sets(cluster, workloads, world)),
        deployments=tuple(_deployments(cluster, world)),
    )


def _pods(cluster: Meta, workloads: Iterable[str], world: World) -> Iterator[Pod]:
    for name in workloads:
        for pod in world.find(Pod, OWNER_NAME, f"{cluster.namespace}/{name}"):
            if is_soperators(pod) and _cluster_of(pod.metadata) == cluster.name:
                yield pod


def _stateful_sets(cluster: Meta, workloads: Iterable[str], world: World) -> Iterator[str]:
    """Also without pods: they may make some any moment."""
    for name in workloads:
        found = world.child(kinds.KRUISE_STATEFUL_SET, cluster.namespace, name)
        if found is not None and _cluster_of(found.metadata) == cluster.name:
            yield name


def _deployments(cluster: Meta, world: World) -> Iterator[str]:
    for name in deployments(cluster.name):
        found = world.child(kinds.DEPLOYMENT, cluster.namespace, name)
        if found is not None and _is_soperators_deployment(found, cluster):
            yield name


def deployments(cluster: str) -> tuple[str, ...]:
    """Those that Soperator makes for a cluster. What we make under these names has other pods."""
    return (
        names.accounting(cluster),
        names.rest(cluster),
        names.sconfigcontroller(cluster),
        names.exporter(cluster),
    )


def _is_soperators_deployment(found: Child, cluster: Meta) -> bool:
    """Ours carry our mark."""
    return is_owned(found, cluster) and APPLIED_DIGEST not in found.metadata.annotations


def is_soperators(pod: Pod) -> bool:
    """Made by a StatefulSet of Kruise, and not ended."""
    return _is_of_kruise(pod) and not pod.has_ended


def clusters_with(pod: Pod) -> Iterator[str]:
    """The SlurmCluster that such a pod belongs to, also when it has ended."""
    if _is_of_kruise(pod):
        yield _cluster_of(pod.metadata)


def _is_of_kruise(pod: Pod) -> bool:
    owner = pod.metadata.owner
    return (
        pod.metadata.labels.get(shared_names.APP_NAME) == APP and owner is not None and owner.group == KRUISE
    )


def _cluster_of(thing: Meta) -> str:
    return thing.labels.get(shared_names.APP_INSTANCE, "")


def held(cluster: str, found: Remains) -> Wait:
    message = (
        f"What Soperator made still runs SlurmCluster {cluster!r}: {found.told}. Nothing of the "
        "cluster is changed, so that no job is lost. When no job runs, delete these StatefulSets and "
        "Deployments; then the operator starts the cluster, with the jobs that are pending. Or have it take "
        f"the workers over with their jobs: set annotation {names.TAKE_OVER}=true on the SlurmCluster. "
        "`kubectl slurm doctor --from soperator` has the commands of both ways."
    )
    return Wait(subject=f"SlurmCluster {cluster}", reason=RUNNING, message=message)


def _workload(pod: Pod) -> str:
    assert pod.metadata.owner is not None
    return pod.metadata.owner.name
