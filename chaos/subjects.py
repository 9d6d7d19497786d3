"""The Slurm cluster that is tormented, as one API has it: what is applied, and how it is changed."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from operator_rig import Slurm

from chaos import baseline, manifests, shared_root
from chaos.impact import ALL, WORKERS, Blow
from chaos.kube import NAMESPACE, Change, Kube, Named
from chaos.manifests import EXTRA_CONF, SETTINGS, Manifest
from slurm_local import image
from slurm_local.cluster import Cluster
from slurm_local.paths import Paths
from slurm_local.progress import Progress
from slurm_local.slurm_cluster import CLUSTER
from slurm_operator.api import nebius, registry
from slurm_operator.api.nebius import names
from slurm_operator.api.registry import Registry
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi

# Makes an image that machines start with.
Archive = Callable[[Paths, Progress], Path]


class Subject(ABC):
    """Its workers are called cpu-0, cpu-1 and so on, whatever the API."""

    kinds: ClassVar[Registry] = registry.DEFAULT  # What our operator is installed with.
    machines: ClassVar[int] = 2
    archives: ClassVar[tuple[Archive, ...]] = (image.pause_archive, image.slurm_archive)
    worker_label: ClassVar[str]
    slurmctld: ClassVar[str]  # Its pod.
    nodeset: ClassVar[Named]
    restapi: ClassVar[Named]
    watched: ClassVar[tuple[Named, ...]]  # What says when all is well.

    @abstractmethod
    def surroundings(self, cluster: Cluster, state: Path) -> list[Manifest]:
        """What is made once, before it; slurmctld's state is kept in that directory."""

    @abstractmethod
    def objects(self, cluster: Cluster) -> list[Manifest]:
        """Its manifests, in the order in which they can be made."""

    @abstractmethod
    def ledgers(self, cluster: Cluster) -> Path:
        """The directory of this machine that jobs see as /ledgers."""

    def lack(self, kube: Kube, of: Named, found: dict[str, Any]) -> str:
        """What this object says is not in order yet; empty when all is well."""
        conditions = found.get("status", {}).get("conditions", [])
        ready = next((one for one in conditions if one["type"] == "Ready"), None)
        if ready is not None and ready["status"] == "True":
            return ""
        return f"{of.kind.plural}/{of.name} is not Ready: {ready and ready['message']}"

    def scaled(self, replicas: int) -> Change:
        return Change(self.nodeset, {"replicas": replicas})

    @abstractmethod
    def leaving(self, replicas: int) -> Blow:
        """Whom a NodeSet that is scaled to so many is about."""

    @abstractmethod
    def marked(self, mark: str) -> Change:
        """Another template for workers."""

    @abstractmethod
    def with_image(self, repository: str, tag: str) -> Change:
        """Workers with another image."""

    @abstractmethod
    def configured(self, line: str) -> Change:
        """One more line in slurm.conf."""


class Components(Subject):
    """Accounting, Controller, RestApi and NodeSet of the first API."""

    worker_label = "app.kubernetes.io/name=slurmd"
    slurmctld = "slurm-controller-0"
    nodeset = Named(NodeSet.KIND, "cpu")
    restapi = Named(RestApi.KIND, "slurm")
    watched = (nodeset, restapi, Named(Controller.KIND, "slurm"))

    def surroundings(self, cluster: Cluster, state: Path) -> list[Manifest]:
        return [*manifests.state_volume(state, NAMESPACE), Slurm(cluster, NAMESPACE).files()]

    def objects(self, cluster: Cluster) -> list[Manifest]:
        return manifests.components(Slurm(cluster, NAMESPACE))

    def ledgers(self, cluster: Cluster) -> Path:
        return Slurm(cluster, NAMESPACE).ledgers

    def leaving(self, replicas: int) -> Blow:
        """Which ones leave is the operator's choice, so as many as stay may have been spared."""
        return Blow(ALL, spared=replicas)

    def marked(self, mark: str) -> Change:
        return Change(self.nodeset, {"template": {"metadata": {"labels": {"changed": mark}}}})

    def with_image(self, repository: str, tag: str) -> Change:
        return Change(self.nodeset, {"slurmd": {"image": f"{repository}:{tag}"}})

    def configured(self, line: str) -> Change:
        return Change(Named(Controller.KIND, "slurm"), {"extraConf": f"{EXTRA_CONF}{line}\n"})


class PlainComponents(Components):
    """The same in words that every operator of this API knows: see baseline.py."""

    machines = WORKERS

    def surroundings(self, cluster: Cluster, state: Path) -> list[Manifest]:
        return [*super().surroundings(cluster, state), *baseline.surroundings(NAMESPACE)]

    def objects(self, cluster: Cluster) -> list[Manifest]:
        return baseline.components(Slurm(cluster, NAMESPACE))

    def lack(self, kube: Kube, of: Named, found: dict[str, Any]) -> str:
        return baseline.sorrow(kube, of.kind, found)


class SharedRoot(Subject):
    """A SlurmCluster and its NodeSet, and what the operator makes of them: see shared_root.py."""

    kinds = registry.ALL
    archives = (*Subject.archives, image.populate_archive)
    worker_label = f"{names.WORKER}=true"
    slurmctld = f"{names.controller(CLUSTER)}-0"
    cluster = Named(nebius.SlurmCluster.KIND, CLUSTER)
    nodeset = Named(nebius.NodeSet.KIND, "cpu")
    worker_part = Named(NodeSet.KIND, "cpu")
    restapi = Named(RestApi.KIND, names.operator_rest(CLUSTER))
    watched = (nodeset, cluster, worker_part, restapi, Named(Controller.KIND, CLUSTER))

    def surroundings(self, cluster: Cluster, state: Path) -> list[Manifest]:
        root = self._root(cluster)
        root.mkdir(parents=True, exist_ok=True)
        return [*manifests.state_volume(state, NAMESPACE), *shared_root.root_volume(root, NAMESPACE)]

    def objects(self, cluster: Cluster) -> list[Manifest]:
        return shared_root.objects(NAMESPACE)

    def ledgers(self, cluster: Cluster) -> Path:
        return self._root(cluster) / "ledgers"

    def _root(self, cluster: Cluster) -> Path:
        return cluster.directory / "root"

    def leaving(self, replicas: int) -> Blow:
        """Those with the highest numbers."""
        return Blow(frozenset(f"cpu-{number}" for number in range(replicas, WORKERS)))

    def marked(self, mark: str) -> Change:
        return Change(self.nodeset, {"workerAnnotations": {"example.org/changed": mark}})

    def with_image(self, repository: str, tag: str) -> Change:
        return Change(self.nodeset, {"slurmd": {"image": {"repository": repository, "tag": tag}}})

    def configured(self, line: str) -> Change:
        return Change(self.cluster, {"customSlurmConfig": f"{SETTINGS}{line}\n"})

    def in_maintenance(self) -> Change:
        return Change(self.cluster, {"maintenance": "downscale"})


COMPONENTS, PLAIN, SHARED_ROOT = Components(), PlainComponents(), SharedRoot()
EVERY: tuple[Subject, ...] = (COMPONENTS, PLAIN, SHARED_ROOT)
