"""Workers on their machine's own network: they have its address, and still need the cluster's DNS."""

from slurm_operator.api.shared import names
from slurm_operator.manifests.meta import Manifest
from slurm_operator.safety.gate import SLURMD

NODE_NAME = "SLURMD_NODENAME"


def adapted(spec: Manifest, *, is_daemon: bool) -> Manifest:
    """A pod's spec, with what it needs there; as it is when it has a network of its own.

    slurmd would call itself as the machine does, which need not be what Kubernetes calls it.
    """
    if not spec.get("hostNetwork"):
        return spec
    path = f"metadata.labels['{names.LABEL_POD_HOSTNAME}']" if is_daemon else "spec.nodeName"
    name = {"name": NODE_NAME, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    containers = [
        _with_node_name(container, name) if container["name"] == SLURMD else container
        for container in spec["containers"]
    ]
    return {"dnsPolicy": "ClusterFirstWithHostNet", **spec, "containers": containers}


def _with_node_name(container: Manifest, name: Manifest) -> Manifest:
    """Registers under the name that the operator looks for. A user's own one stands."""
    if any(given["name"] == NODE_NAME for given in container.get("env", ())):
        return container
    return {
        **container,
        "env": [name, *container.get("env", ())],
        "args": [*container.get("args", ()), "-N", f"$({NODE_NAME})"],
    }
