"""The plug of a local cluster's node: pulled, and put back."""

from slurm_local.cluster import Cluster, is_ready
from slurm_local.machine import cgroups
from slurm_local.machine.network import NodeNetwork


def stop_node(cluster: Cluster, number: int) -> None:
    """Pulls the plug: every process of the node is gone, its pods' too. Its files stay."""
    cgroups.kill(cluster.node_files(number).cgroup)


def start_node(cluster: Cluster, number: int) -> None:
    """Boots a stopped node again."""
    node = cluster.node_files(number)
    cluster.state.cell.path(node.socket).unlink(missing_ok=True)
    cluster.parts.restart(f"containerd-{node.name}")
    cluster.wait_for_containerd(node)
    cluster.parts.restart(f"kubelet-{node.name}")
    cluster.parts.restart(f"kube-proxy-{node.name}")
    cluster.parts.wait_until(
        lambda: _is_node_ready(cluster, number), f"{NodeNetwork(number).name} to be Ready"
    )


def _is_node_ready(cluster: Cluster, number: int) -> bool:
    """As the kubelet says; the API server believes it for 40 s after a node went silent."""
    name = NodeNetwork(number).name
    return any(is_ready(node) for node in cluster.items("/api/v1/nodes") if node["metadata"]["name"] == name)
