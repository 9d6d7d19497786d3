"""What runs, what does not, and why: one record for people and for programs."""

from pathlib import Path

from slurm_local.cluster import Cluster, is_ready
from slurm_local.kubernetes.api_call import Refused
from slurm_local.machine.processes import last_lines
from slurm_local.paths import Paths
from slurm_local.slurm_cluster import NAMESPACE
from slurm_local.state import Ledger
from slurm_operator import wire


class ComponentStatus(wire.Record):
    """One process of the cluster. `last_lines` is the end of its log if it died."""

    name: str
    is_running: bool
    log: str
    last_lines: str = ""


class ThingStatus(wire.Record):
    """A node or a pod."""

    name: str
    is_ready: bool


class ClusterStatus(wire.Record):
    """Everything `local status` shows."""

    name: str
    is_running: bool
    url: str = ""
    kubeconfig: str = ""
    memory_bytes: int = 0
    components: list[ComponentStatus] = []
    nodes: list[ThingStatus] = []
    slurm_pods: list[ThingStatus] = []

    @property
    def is_healthy(self) -> bool:
        parts = all(component.is_running for component in self.components)
        return self.is_running and parts and all(thing.is_ready for thing in (*self.nodes, *self.slurm_pods))


def names(paths: Paths) -> list[str]:
    """Every cluster of this user: running, crashed, or half taken down."""
    return sorted(path.name for path in paths.clusters.glob("*/"))


def status(name: str, paths: Paths) -> ClusterStatus:
    """How one cluster is. A cluster that does not exist is one that does not run."""
    cluster = Cluster(name, paths)
    state = Ledger(cluster.directory).read()
    if state is None or not state.cell.is_alive:
        return ClusterStatus(name=name, is_running=False)
    components = [
        ComponentStatus(name=part, is_running=True, log=process.log)
        if state.cell.has(process.process)
        else ComponentStatus(
            name=part, is_running=False, log=process.log, last_lines=last_lines(Path(process.log))
        )
        for part, process in state.parts.items()
    ]
    return ClusterStatus(
        name=name,
        is_running=True,
        url=state.url,
        kubeconfig=str(cluster.kubeconfig),
        memory_bytes=state.cell.resident_bytes(),
        components=components,
        nodes=_things(cluster, "/api/v1/nodes"),
        slurm_pods=_things(cluster, f"/api/v1/namespaces/{NAMESPACE}/pods"),
    )


def _things(cluster: Cluster, path: str) -> list[ThingStatus]:
    try:
        items = cluster.items(path)
    except (OSError, Refused):  # The components above say why.
        return []
    return [ThingStatus(name=item["metadata"]["name"], is_ready=is_ready(item)) for item in items]
