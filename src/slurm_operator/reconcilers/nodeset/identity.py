"""Who a worker is: its ordinal or its Kubernetes node, and the names that follow from it."""

import hashlib

from slurm_operator.api import names
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.workers import ScalingMode
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.manifests.worker_names import mode_of as mode_of
from slurm_operator.manifests.worker_names import slurm_node_name as slurm_node_name


def padded(ordinal: int, nodeset: NodeSet) -> str:
    return str(ordinal).zfill(nodeset.spec.ordinal_padding)


def pod_name(ordinal: int, nodeset: NodeSet) -> str:
    return f"{nodeset.metadata.name}-{padded(ordinal, nodeset)}"


def hostname(ordinal: int, nodeset: NodeSet) -> str:
    """The host name and so the Slurm node name of a numbered worker: by prefix, else like its pod."""
    prefix = nodeset.spec.hostname_prefix
    return f"{prefix}{padded(ordinal, nodeset)}" if prefix else pod_name(ordinal, nodeset)


def daemon_pod_name(kube_node: str, nodeset: NodeSet) -> str:
    """The same for the same pair, so that a pod can never be made twice, however late a watch is."""
    pair = f"{nodeset.metadata.uid}/{kube_node}"
    return f"{nodeset.metadata.name}-{hashlib.sha256(pair.encode()).hexdigest()[:8]}"


def daemon_hostname(kube_node: KubeNode) -> str:
    """The node's annotation word for word, else the first part of the node's name."""
    override = kube_node.metadata.annotations.get(names.HOSTNAME_OVERRIDE)
    return override or kube_node.metadata.name.partition(".")[0]


def ordinal_of(pod: Pod, nodeset: NodeSet) -> int | None:
    """The number of a worker; None in DaemonSet mode."""
    if mode_of(pod) is ScalingMode.DAEMON_SET:
        return None
    base, _, number = pod.metadata.name.rpartition("-")
    return int(number) if base == nodeset.metadata.name and number.isdecimal() else None


def is_called_like(pod: Pod, nodeset: NodeSet) -> bool:
    """Labels and name are those of a worker of this NodeSet, in whatever mode it was made."""
    labels, name = pod.metadata.labels, nodeset.metadata.name
    if labels.get(names.APP_NAME) != "slurmd" or labels.get(names.APP_INSTANCE) != name:
        return False
    if mode_of(pod) is ScalingMode.DAEMON_SET:
        return pod.metadata.name.startswith(f"{name}-")
    return ordinal_of(pod, nodeset) is not None
