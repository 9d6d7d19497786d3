"""Names by which pods find each other."""

from slurm_operator.api import names
from slurm_operator.api.controller import Controller
from slurm_operator.api.images import cluster_domain


def worker_domain(controller: str, namespace: str) -> str:
    """The search domain in which workers of a Controller have their bare host names."""
    return f"{names.worker_service(controller)}.{namespace}.svc.{cluster_domain()}"


def domain_in(resolv_conf: str) -> str:
    """The domain of the cluster, as the kubelet writes it for pods: `search ns.svc.DOMAIN svc.DOMAIN DOMAIN`.

    Empty outside of one.
    """
    lines = (line.split() for line in resolv_conf.splitlines())
    searched = [word for words in lines if words[:1] == ["search"] for word in words[1:]]
    return next((word.removeprefix("svc.").rstrip(".") for word in searched if word.startswith("svc.")), "")


def controller_address(controller: Controller) -> str:
    """host:port where slurmctld answers clients, and hands out the configuration."""
    spec, meta = controller.spec, controller.metadata
    if spec.external and spec.external_config is not None:
        return f"{spec.external_config.host}:{spec.external_config.port}"
    port = spec.service.port or names.SLURMCTLD_PORT
    return f"{names.controller_service(meta.name)}.{meta.namespace}:{port}"
