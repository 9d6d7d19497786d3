"""Names by which pods find each other."""

from slurm_operator.api import names
from slurm_operator.api.controller import Controller

CLUSTER_DOMAIN = "cluster.local"


def worker_domain(controller: str, namespace: str) -> str:
    """The search domain in which workers of a Controller have their bare host names."""
    return f"{names.worker_service(controller)}.{namespace}.svc.{CLUSTER_DOMAIN}"


def controller_address(controller: Controller) -> str:
    """host:port where slurmctld answers clients, and hands out the configuration."""
    spec, meta = controller.spec, controller.metadata
    if spec.external and spec.external_config is not None:
        return f"{spec.external_config.host}:{spec.external_config.port}"
    port = spec.service.port or names.SLURMCTLD_PORT
    return f"{names.controller_service(meta.name)}.{meta.namespace}:{port}"
