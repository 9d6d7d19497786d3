"""Who a worker is: its ordinal or its Kubernetes node, and the names that follow from it."""

import hashlib
import re

from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.worker_parts import ScalingMode
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.builders.parts import Owner
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.manifests.worker_names import mode_of as mode_of
from slurm_operator.manifests.worker_names import slurm_node_name as slurm_node_name

# What a pod can have for one (RFC 1123, a single label).
_HOST_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def owner(nodeset: NodeSet) -> Owner:
    """The NodeSet as the owner of its workers."""
    return Owner(NodeSet.KIND, nodeset.metadata, "slurmd", "worker", nodeset.spec.children.labels)


def padded(ordinal: int, nodeset: NodeSet) -> str:
    return str(ordinal).zfill(nodeset.spec.ordinal_padding)


def pod_name(ordinal: int, nodeset: NodeSet) -> str:
    return f"{nodeset.metadata.name}-{padded(ordinal, nodeset)}"


def prefix(nodeset: NodeSet) -> str:
    """What the host names of numbered workers begin with: as the template says, else as their pods do."""
    return nodeset.spec.hostname_prefix or f"{nodeset.metadata.name}-"


def hostname(ordinal: int, nodeset: NodeSet) -> str:
    """The host name and so the Slurm node name of a numbered worker."""
    return nodeset.host_name(ordinal)


def is_numbered(slurm_node: str, prefix: str) -> bool:
    """It is called as workers with numbers are, however many digits these have."""
    return re.fullmatch(re.escape(prefix) + r"\d+", slurm_node) is not None


def is_by_machine(nodeset: NodeSet) -> bool:
    """Slurm knows its workers by the names of their machines, not by numbers."""
    is_daemon = nodeset.spec.scaling_mode is ScalingMode.DAEMON_SET
    return is_daemon or bool(nodeset.spec.template.spec.get("hostNetwork"))


def daemon_pod_name(kube_node: str, nodeset: NodeSet) -> str:
    """The same for the same pair, so that a pod can never be made twice, however late a watch is."""
    pair = f"{nodeset.metadata.uid}/{kube_node}"
    return f"{nodeset.metadata.name}-{hashlib.sha256(pair.encode()).hexdigest()[:8]}"


def daemon_hostname(kube_node: KubeNode) -> str:
    """The node's annotation word for word, else the first part of the node's name."""
    override = kube_node.metadata.annotations.get(names.HOSTNAME_OVERRIDE)
    return override or kube_node.metadata.name.partition(".")[0]


def override_problem(kube_node: KubeNode) -> str | None:
    """Why no worker can be called as the node's annotation says: Kubernetes would refuse the pod."""
    override = kube_node.metadata.annotations.get(names.HOSTNAME_OVERRIDE)
    if not override or _HOST_NAME.fullmatch(override):
        return None
    return (
        f"annotation {names.HOSTNAME_OVERRIDE} of Node {kube_node.metadata.name}: {override!r} is no host "
        "name of a pod, which has at most 63 small letters, digits and '-', and no '-' at either end"
    )


def next_name(pod: Pod, nodeset: NodeSet) -> str:
    """What the pod is called that comes in the place of this one, if one does."""
    ordinal = ordinal_of(pod, nodeset)
    if ordinal is not None:
        return pod_name(ordinal, nodeset)
    machine = pod.spec.node_name
    return daemon_pod_name(machine, nodeset) if machine else pod.metadata.name


def ordinal_of(pod: Pod, nodeset: NodeSet) -> int | None:
    """The number of a worker; None in DaemonSet mode."""
    if mode_of(pod) is ScalingMode.DAEMON_SET:
        return None
    base, _, number = pod.metadata.name.rpartition("-")
    return int(number) if base == nodeset.metadata.name and number.isdecimal() else None


def is_renamed(pod: Pod, nodeset: NodeSet) -> bool:
    """Slurm will know the next worker of its number by another name.

    On the network of machines it is called like its machine. But who comes there next can use its record only
    if the NodeSet is called as before, which the host name tells.
    """
    ordinal = ordinal_of(pod, nodeset)
    if ordinal is None or nodeset.spec.scaling_mode is ScalingMode.DAEMON_SET:
        return False
    wanted = hostname(ordinal, nodeset)
    if is_by_machine(nodeset):
        said = pod.metadata.labels.get(names.LABEL_POD_HOSTNAME, wanted)
        return not pod.spec.host_network or said != wanted
    return slurm_node_name(pod) != wanted


def is_called_like(pod: Pod, nodeset: NodeSet) -> bool:
    """Labels and name are those of a worker of this NodeSet, in whatever mode it was made.

    One that was made for another Slurm cluster never is: its slurmd and its jobs are there.
    """
    labels, name = pod.metadata.labels, nodeset.metadata.name
    if belonging.part(labels) != ("slurmd", name):
        return False
    if labels.get(names.LABEL_CLUSTER, nodeset.spec.controller) != nodeset.spec.controller:
        return False
    if mode_of(pod) is ScalingMode.DAEMON_SET:
        return pod.metadata.name.startswith(f"{name}-")
    return ordinal_of(pod, nodeset) is not None
