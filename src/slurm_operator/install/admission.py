"""The webhook: what the API server asks it about, and what it may look up to answer."""

from typing import Final

from slurm_operator.install import rights
from slurm_operator.install.chosen import NAME, Installation, Manifest, granted, labels
from slurm_operator.install.pods import CONTAINER_SECURITY, HEALTH_PORT, POD_SECURITY, probes
from slurm_operator.manifests.admission import service as through
from slurm_operator.manifests.admission import validating

WEBHOOK: Final = f"{NAME}-webhook"
CERTIFICATES: Final = f"{WEBHOOK}-certificates"
SERVER_PORT: Final = 9443
RESOURCES: Final = {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "512Mi"}}


def admission(chosen: Installation) -> list[Manifest]:
    """Everything about the webhook."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": chosen.metadata(WEBHOOK)},
        *access(chosen),
        service(chosen),
        deployment(chosen),
        configuration(chosen),
        network_policy(chosen),
    ]


def access(chosen: Installation) -> list[Manifest]:
    known = rights.webhook_configurations(WEBHOOK)
    at_home = granted(chosen, WEBHOOK, "Role", chosen.namespace, rights.webhook_certificates(CERTIFICATES))
    if not chosen.namespaces:
        return [*granted(chosen, WEBHOOK, "ClusterRole", "", (*rights.WEBHOOK_LOOKUPS, *known)), *at_home]
    return [
        *granted(chosen, WEBHOOK, "ClusterRole", "", known),
        *at_home,
        *(
            manifest
            for watched in chosen.namespaces
            for manifest in granted(
                chosen, WEBHOOK, "Role", watched, rights.WEBHOOK_LOOKUPS, name=f"{WEBHOOK}-clusters"
            )
        ),
    ]


def service(chosen: Installation) -> Manifest:
    ports = [
        {"name": "webhook", "port": 443, "targetPort": "webhook"},
        {"name": "health", "port": HEALTH_PORT, "targetPort": "health"},
    ]
    spec = {"selector": labels(WEBHOOK), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": chosen.metadata(WEBHOOK), "spec": spec}


def deployment(chosen: Installation) -> Manifest:
    """A new pod answers before an old one goes: the API server must not ask in vain."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": chosen.metadata(WEBHOOK),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": labels(WEBHOOK)},
            "template": {
                "metadata": {
                    "labels": labels(WEBHOOK),
                    "annotations": {"kubectl.kubernetes.io/default-container": "webhook"},
                },
                "spec": {
                    "serviceAccountName": WEBHOOK,
                    "terminationGracePeriodSeconds": 15,
                    "securityContext": POD_SECURITY,
                    "containers": [_container(chosen)],
                },
            },
        },
    }


def _container(chosen: Installation) -> Manifest:
    args = [
        f"--health-addr=:{HEALTH_PORT}",
        "--metrics-addr=0",
        f"--server-addr=:{SERVER_PORT}",
        f"--service-name={WEBHOOK}",
        f"--cert-secret={CERTIFICATES}",
        f"--webhook-configurations={WEBHOOK}",
        "--pods-binding=false",
    ]
    if chosen.namespaces:
        args.append(f"--namespaces={','.join(sorted(chosen.namespaces))}")
    return {
        "name": "webhook",
        "image": chosen.webhook_image,
        "imagePullPolicy": chosen.pull_policy,
        "args": args,
        "ports": [
            {"name": "webhook", "containerPort": SERVER_PORT},
            {"name": "health", "containerPort": HEALTH_PORT},
        ],
        **probes(),
        "resources": RESOURCES,
        "securityContext": CONTAINER_SECURITY,
    }


def configuration(chosen: Installation) -> Manifest:
    """What the API server asks about: our kinds only. The webhook itself says whom to believe."""
    asked = validating(through(chosen.namespace), namespaces=chosen.namespaces)
    return asked | {"metadata": asked["metadata"] | {"labels": labels(WEBHOOK)}}


def network_policy(chosen: Installation) -> Manifest:
    """The API server may be anywhere, so it is the ports that are narrowed."""
    ports = [{"protocol": "TCP", "port": name} for name in ("webhook", "health")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": chosen.metadata(WEBHOOK),
        "spec": {
            "podSelector": {"matchLabels": labels(WEBHOOK)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": ports}],
        },
    }
