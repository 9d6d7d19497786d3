"""What Slurm calls the workers behind pods, and from where they speak to it."""

from slurm_operator.api.shared import names
from slurm_operator.api.shared.worker_parts import ScalingMode
from slurm_operator.manifests.objects import Pod


def mode_of(pod: Pod) -> ScalingMode:
    """The mode that the pod was made in."""
    said = pod.metadata.labels.get(names.LABEL_SCALING_MODE)
    return ScalingMode.DAEMON_SET if said == ScalingMode.DAEMON_SET else ScalingMode.STATEFUL_SET


def slurm_node_name(pod: Pod) -> str:
    """What Slurm calls this worker. On the machine's own network slurmd takes the machine's name."""
    if pod.spec.host_network and mode_of(pod) is ScalingMode.STATEFUL_SET and pod.spec.node_name:
        return pod.spec.node_name
    label = pod.metadata.labels.get(names.LABEL_POD_HOSTNAME)
    return label or pod.spec.hostname or pod.metadata.name


def registers_from(address: str, pod: Pod) -> bool:
    """Whether a slurmd that registered from this address can be the pod's.

    On its machine's network it speaks from whichever address the route to slurmctld has, such as that of the
    pods' bridge or of a tunnel. There its name has to do, where it is the machine's own: no two machines
    have the same, and slurmd's port is taken only once on each.

    Soperator's images tell Slurm the name that DNS has for the pod. Such a name is of one pod at a time.
    """
    if not address:
        return False
    if address == pod.status.pod_ip or any(ip.ip == address for ip in pod.status.pod_ips):
        return True
    if _is_dns_name_of(pod, address):
        return True
    return pod.spec.host_network and slurm_node_name(pod) == pod.spec.node_name


def _is_dns_name_of(pod: Pod, address: str) -> bool:
    """Whether it is the name that the pod has behind its headless Service, with or without the domain."""
    name, place = pod.metadata.name, (pod.spec.subdomain, pod.metadata.namespace, "svc")
    host, *rest = address.lower().rstrip(".").split(".")
    is_called_so = host == name and pod.spec.hostname in ("", name)
    return bool(pod.spec.subdomain) and is_called_so and tuple(rest[:3]) == place
