"""The webhook: what the API server asks it about, and what it may look up to answer."""

from typing import Final

from slurm_operator.install import rights
from slurm_operator.install.chosen import NAME, Installation, Manifest, granted, labels
from slurm_operator.install.pods import HEALTH_PORT, deployment, network_policy
from slurm_operator.manifests.builders.admission import service as through
from slurm_operator.manifests.builders.admission import validating

WEBHOOK: Final = f"{NAME}-webhook"
CERTIFICATES: Final = f"{WEBHOOK}-certificates"
SERVER_PORT: Final = 9443
RESOURCES: Final = {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "512Mi"}}


# A new pod answers before an old one goes: the API server must always find one that answers.
_NO_GAP: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def admission(chosen: Installation) -> list[Manifest]:
    """Everything about the webhook."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": chosen.metadata(WEBHOOK)},
        *access(chosen),
        service(chosen),
        deployment(chosen, WEBHOOK, _container(chosen), replicas=1, strategy=_NO_GAP),
        configuration(chosen),
        network_policy(chosen, WEBHOOK, ["webhook", "health"]),
    ]


def access(chosen: Installation) -> list[Manifest]:
    known = rights.webhook_configurations(WEBHOOK)
    lookups = rights.webhook_lookups(chosen.kinds)
    at_home = granted(chosen, WEBHOOK, "Role", chosen.namespace, rights.webhook_certificates(CERTIFICATES))
    if not chosen.namespaces:
        return [*granted(chosen, WEBHOOK, "ClusterRole", "", (*lookups, *known)), *at_home]
    return [
        *granted(chosen, WEBHOOK, "ClusterRole", "", known),
        *at_home,
        *(
            manifest
            for watched in chosen.namespaces
            for manifest in granted(chosen, WEBHOOK, "Role", watched, lookups, name=f"{WEBHOOK}-clusters")
        ),
    ]


def service(chosen: Installation) -> Manifest:
    ports = [
        {"name": "webhook", "port": 443, "targetPort": "webhook"},
        {"name": "health", "port": HEALTH_PORT, "targetPort": "health"},
    ]
    spec = {"selector": labels(WEBHOOK), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": chosen.metadata(WEBHOOK), "spec": spec}


def _container(chosen: Installation) -> Manifest:
    args = [
        "--pods-binding=false",
        *chosen.apis,
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
        "resources": RESOURCES,
    }


def configuration(chosen: Installation) -> Manifest:
    """What the API server asks about: our kinds only. The webhook itself says whom to believe."""
    asked = validating(
        through(chosen.namespace),
        kinds=chosen.kinds,
        namespaces=chosen.namespaces,
        guards_secrets=chosen.serves_nebius,
    )
    return asked | {"metadata": asked["metadata"] | {"labels": labels(WEBHOOK)}}
