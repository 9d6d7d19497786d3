"""What the pods of the operator have in common: the strictest security that Kubernetes has a name for."""

from collections.abc import Sequence
from typing import Any, Final

from slurm_operator.install.chosen import Installation, Manifest, labels

HEALTH_PORT: Final = 8081
METRICS_PORT: Final = 8080
RECORD_FOLDER: Final = "/var/lib/slurm-operator"

POD_SECURITY: Final = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}

# Measured with the example of the tutorial, and with ten thousand pods in the caches: see the guide.
RESOURCES: Final = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


def probes() -> dict[str, Any]:
    """Ready when everything has been read; restarted only when the event loop stands still."""
    return {
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 2},
    }


def deployment(chosen: Installation, component: str, container: Manifest, **spec: Any) -> Manifest:
    """Pods with one container, under the service account of the component."""
    notes = {"kubectl.kubernetes.io/default-container": container["name"]}
    hardened = {**container, **probes(), "securityContext": CONTAINER_SECURITY}
    pod = {
        "serviceAccountName": component,
        "terminationGracePeriodSeconds": 15,
        "securityContext": POD_SECURITY,
        "containers": [hardened],
    }
    mounts = hardened.get("volumeMounts", ())
    if mounts:
        pod["volumes"] = [{"name": mount["name"], "emptyDir": {}} for mount in mounts]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": chosen.metadata(component),
        "spec": {
            **spec,
            "selector": {"matchLabels": labels(component)},
            "template": {"metadata": {"labels": labels(component), "annotations": notes}, "spec": pod},
        },
    }


def network_policy(chosen: Installation, component: str, ports: Sequence[str]) -> Manifest:
    """Nobody reaches the pods but on these ports.

    Where they may go themselves is not narrowed: API servers stand outside the cluster's own addresses, and
    slurmrestd may listen on any port.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": chosen.metadata(component),
        "spec": {
            "podSelector": {"matchLabels": labels(component)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": name} for name in ports]}],
        },
    }
