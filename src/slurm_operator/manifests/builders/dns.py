"""Names by which pods find each other."""

from slurm_operator.api.shared import names
from slurm_operator.api.shared.images import cluster_domain
from slurm_operator.api.slinky.controller import Controller


def worker_domain(controller: Controller) -> str:
    """The search domain in which workers of a Controller have their bare host names."""
    return service_domain(controller.child_names.workers, controller.metadata.namespace)


def service_domain(service: str, namespace: str) -> str:
    """The domain in which pods behind a headless Service have their bare host names."""
    return f"{service}.{namespace}.svc.{cluster_domain()}"


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
    return f"{controller.child_names.service}.{meta.namespace}:{port}"
