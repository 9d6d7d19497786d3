"""What a person would look at first when a run does not settle, or loses a job."""

from chaos.kube import NAMESPACE
from chaos.subjects import Subject
from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError


def picture(cluster: Cluster, subject: Subject, operator: tuple[str, str]) -> str:
    """`operator`: its namespace and its Deployment."""
    where, deployment = operator
    watched = ",".join(f"{kind.plural}.{kind.group}" for kind, _ in subject.watched)
    looks = (
        ("get", f"pods,accountings,{watched}", "-o", "wide", "-n", NAMESPACE),
        ("get", watched, "-o", "yaml", "-n", NAMESPACE),
        ("get", "events", "--sort-by=.lastTimestamp", "-n", NAMESPACE),
        ("logs", subject.slurmctld, "-c", "slurmctld", "--tail=200", "-n", NAMESPACE),
        ("logs", f"deploy/{deployment}", "--tail=400", "-n", where),
    )
    return "\n".join(_looked(cluster, look) for look in looks)


def _looked(cluster: Cluster, look: tuple[str, ...]) -> str:
    try:
        return f"$ kubectl {' '.join(look)}\n{cluster.kubectl(*look)}"
    except LocalError as error:
        return f"$ kubectl {' '.join(look)}\n{error}"
