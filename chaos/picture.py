"""What a person would look at first when a run does not settle, or loses a job."""

from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError


def picture(cluster: Cluster, namespace: str, operator: tuple[str, str]) -> str:
    """`operator`: its namespace and its Deployment."""
    where, deployment = operator
    looks = (
        ("get", "pods,nodesets,controllers,restapis,accountings", "-o", "wide", "-n", namespace),
        ("get", "nodeset,controller,restapi", "-o", "yaml", "-n", namespace),
        ("get", "events", "--sort-by=.lastTimestamp", "-n", namespace),
        ("logs", "slurm-controller-0", "-c", "slurmctld", "--tail=200", "-n", namespace),
        ("logs", f"deploy/{deployment}", "--tail=400", "-n", where),
    )
    return "\n".join(_looked(cluster, look) for look in looks)


def _looked(cluster: Cluster, look: tuple[str, ...]) -> str:
    try:
        return f"$ kubectl {' '.join(look)}\n{cluster.kubectl(*look)}"
    except LocalError as error:
        return f"$ kubectl {' '.join(look)}\n{error}"
