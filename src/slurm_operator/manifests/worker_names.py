"""What Slurm calls the workers behind pods."""

from slurm_operator.api import names
from slurm_operator.api.workers import ScalingMode
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
