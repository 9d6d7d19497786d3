"""Names by which pods find each other."""

from slurm_operator.api import names

CLUSTER_DOMAIN = "cluster.local"


def worker_domain(controller: str, namespace: str) -> str:
    """The search domain in which workers of a Controller have their bare host names."""
    return f"{names.worker_service(controller)}.{namespace}.svc.{CLUSTER_DOMAIN}"
