"""Every object of an installation, in the order in which they need each other."""

from typing import Any

from slurm_operator import wire
from slurm_operator.api import images
from slurm_operator.install import rights
from slurm_operator.install.pods import (
    CONTAINER_SECURITY,
    HEALTH_PORT,
    METRICS_PORT,
    POD_SECURITY,
    RESOURCES,
    labels,
    probes,
)

Manifest = dict[str, Any]

NAME = "slurm-operator"
_RBAC = "rbac.authorization.k8s.io"


class Installation(wire.Record):
    """What can be chosen about an installation without Helm. The charts have more."""

    image: str
    namespace: str = NAME
    pull_policy: str = "IfNotPresent"
    replicas: int = 1
    slurm_images: str = ""
    mariadb_image: str = ""
    # Slurm clusters live in these namespaces only; empty is in all.
    namespaces: tuple[str, ...] = ()

    def metadata(self, name: str = NAME, *, namespace: str | None = None) -> Manifest:
        return {
            "name": name,
            "namespace": self.namespace if namespace is None else namespace,
            "labels": labels(NAME),
        }


def installation(chosen: Installation) -> list[Manifest]:
    """The whole operator, apart from the custom resource definitions."""
    return [
        namespace(chosen),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": chosen.metadata()},
        *access(chosen),
        service(chosen),
        deployment(chosen),
        *([budget(chosen)] if chosen.replicas > 1 else []),
        network_policy(chosen),
    ]


def namespace(chosen: Installation) -> Manifest:
    """The operator's home, in which no other pod may ask for more than its own do."""
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": chosen.namespace, "labels": labels(NAME) | level}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def access(chosen: Installation) -> list[Manifest]:
    """Rights and who has them: everywhere, or only where Slurm clusters may be."""
    at_home = _granted(chosen, "Role", NAME, chosen.namespace, rights.AT_HOME)
    if not chosen.namespaces:
        everything = (*rights.CLUSTER_WIDE, *rights.IN_NAMESPACES)
        return [*_granted(chosen, "ClusterRole", NAME, "", everything), *at_home]
    return [
        *_granted(chosen, "ClusterRole", NAME, "", rights.CLUSTER_WIDE),
        *at_home,
        *(
            manifest
            for watched in chosen.namespaces
            for manifest in _granted(chosen, "Role", f"{NAME}-clusters", watched, rights.IN_NAMESPACES)
        ),
    ]


def _granted(
    chosen: Installation, kind: str, name: str, where: str, granted: tuple[rights.Right, ...]
) -> list[Manifest]:
    metadata = chosen.metadata(name, namespace=where)
    if kind == "ClusterRole":
        del metadata["namespace"]
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": chosen.namespace}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rights.rules(granted)},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
            "subjects": [subject],
        },
    ]


def service(chosen: Installation) -> Manifest:
    """Where Prometheus finds the metrics. Headless: each manager has its own."""
    ports = [
        {"name": name, "port": port, "targetPort": name}
        for name, port in (("health", HEALTH_PORT), ("metrics", METRICS_PORT))
    ]
    spec = {"clusterIP": "None", "selector": labels(NAME), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": chosen.metadata(), "spec": spec}


def deployment(chosen: Installation) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": chosen.metadata(),
        "spec": {
            "replicas": chosen.replicas,
            "selector": {"matchLabels": labels(NAME)},
            "template": {
                "metadata": {
                    "labels": labels(NAME),
                    "annotations": {"kubectl.kubernetes.io/default-container": "manager"},
                },
                "spec": {
                    "serviceAccountName": NAME,
                    "terminationGracePeriodSeconds": 15,
                    "securityContext": POD_SECURITY,
                    "containers": [manager(chosen)],
                },
            },
        },
    }


def manager(chosen: Installation) -> Manifest:
    """The container that runs the reconcilers."""
    args = [f"--health-addr=:{HEALTH_PORT}", f"--metrics-addr=:{METRICS_PORT}", "--leader-elect=true"]
    if chosen.namespaces:
        args.append(f"--namespaces={','.join(sorted(chosen.namespaces))}")
    named = (
        (images.PATTERN_VARIABLE, chosen.slurm_images),
        (images.MARIADB_VARIABLE, chosen.mariadb_image),
    )
    environment = [{"name": name, "value": value} for name, value in named if value]
    return {
        "name": "manager",
        "image": chosen.image,
        "imagePullPolicy": chosen.pull_policy,
        "args": args,
        **({"env": environment} if environment else {}),
        "ports": [
            {"name": "health", "containerPort": HEALTH_PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        **probes(),
        "resources": RESOURCES,
        "securityContext": CONTAINER_SECURITY,
    }


def budget(chosen: Installation) -> Manifest:
    """Of several managers one stays while machines are emptied."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": labels(NAME)}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": chosen.metadata(),
        "spec": spec,
    }


def network_policy(chosen: Installation) -> Manifest:
    """Nobody has to reach the operator but probes and Prometheus.

    Where it may go itself is not narrowed: API servers stand outside the cluster's own addresses, and
    slurmrestd may listen on any port.
    """
    ports = [{"protocol": "TCP", "port": name} for name in ("health", "metrics")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": chosen.metadata(),
        "spec": {
            "podSelector": {"matchLabels": labels(NAME)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": ports}],
        },
    }
