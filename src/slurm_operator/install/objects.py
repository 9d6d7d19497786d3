"""Every object of an installation, in the order in which they need each other."""

from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.shared import images
from slurm_operator.install import rights
from slurm_operator.install.admission import admission
from slurm_operator.install.chosen import NAME, Installation, Manifest, granted, labels
from slurm_operator.install.pods import (
    HEALTH_PORT,
    METRICS_PORT,
    RECORD_FOLDER,
    RESOURCES,
    deployment,
    network_policy,
)
from slurm_operator.manifests.builders.crd_protection import NAME as CRD_POLICY
from slurm_operator.manifests.builders.crd_protection import crd_protection
from slurm_operator.manifests.builders.protection import NAME as WORKER_POLICY
from slurm_operator.manifests.builders.protection import protection, service_account
from slurm_operator.manifests.builders.user_policies import roles, user_policies


def installation(chosen: Installation) -> list[Manifest]:
    """The whole operator, apart from the custom resource definitions."""
    return [
        namespace(chosen),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": chosen.metadata(NAME)},
        *access(chosen),
        *(people(chosen) if chosen.sees_cluster else []),
        *([rebooter()] if chosen.serves_nebius and chosen.sees_cluster else []),
        service(chosen),
        deployment(chosen, NAME, manager(chosen), replicas=chosen.replicas),
        *([budget(chosen)] if chosen.replicas > 1 else []),
        network_policy(chosen, NAME, ["health", "metrics"]),
        *(admission(chosen) if chosen.webhook_image else []),
        *(protected(chosen) if chosen.is_protecting else []),
        *(limited(chosen) if chosen.limits_users else []),
    ]


def namespace(chosen: Installation) -> Manifest:
    """The operator's home, in which no other pod may ask for more than its own do."""
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": chosen.namespace, "labels": labels(NAME) | level}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def access(chosen: Installation, account: str = NAME) -> list[Manifest]:
    """Rights and who has them: everywhere, or only where Slurm clusters may be."""
    name = NAME if account == NAME else f"{NAME}-{account}"
    at_home = granted(chosen, account, "Role", chosen.namespace, rights.at_home(chosen.kinds), name)
    cluster_wide, in_namespaces = rights.cluster_wide(chosen.needed), rights.in_namespaces(chosen.needed)
    if not chosen.namespaces:
        everything = tuple(dict.fromkeys((*cluster_wide, *in_namespaces)))
        return [*granted(chosen, account, "ClusterRole", "", everything, name), *at_home]
    return [
        *(granted(chosen, account, "ClusterRole", "", cluster_wide, name) if chosen.sees_cluster else []),
        *at_home,
        *(
            manifest
            for watched in chosen.namespaces
            for manifest in granted(chosen, account, "Role", watched, in_namespaces, f"{name}-clusters")
        ),
    ]


def people(chosen: Installation) -> list[Manifest]:
    """Roles that Kubernetes adds to its own: who may view or edit a namespace may do so with our kinds."""
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"{NAME}-{role}", "labels": labels(NAME) | rights.aggregated(role)},
            "rules": rights.rules(rights.of_people(chosen.needed, role)),
        }
        for role in ("view", "edit")
    ]


def rebooter() -> Manifest:
    """What rebooters may do. Bound to nobody: an administrator says whose NodeConfigurators may reboot."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": nebius_names.REBOOTER_ROLE, "labels": labels(NAME)},
        "rules": rights.rules(rights.REBOOTER),
    }


def protected(chosen: Installation, account: str = NAME, suffix: str = "") -> list[Manifest]:
    """The policies: workers are not deleted under their jobs, and CRDs not with every cluster."""
    operator = service_account(chosen.namespace, account)
    made = [
        *protection(operator, namespaces=chosen.namespaces, name=WORKER_POLICY + suffix),
        *crd_protection(CRD_POLICY + suffix),
    ]
    return [thing | {"metadata": thing["metadata"] | {"labels": labels(NAME)}} for thing in made]


def limited(chosen: Installation) -> list[Manifest]:
    """The policies about users, and the roles for those whom they let through."""
    operator = service_account(chosen.namespace, NAME)
    made = [*roles(), *user_policies(operator, chosen.kinds, namespaces=chosen.namespaces)]
    return [thing | {"metadata": thing["metadata"] | {"labels": labels(NAME)}} for thing in made]


def service(chosen: Installation) -> Manifest:
    """Where Prometheus finds the metrics. Headless: each manager has its own."""
    ports = [
        {"name": name, "port": port, "targetPort": name}
        for name, port in (("health", HEALTH_PORT), ("metrics", METRICS_PORT))
    ]
    spec = {"clusterIP": "None", "selector": labels(NAME), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": chosen.metadata(NAME), "spec": spec}


def manager(chosen: Installation) -> Manifest:
    """The container that runs the reconcilers."""
    args = chosen.apis  # None that says what is so anyway: flags win over the environment and over settings.
    if chosen.namespaces:
        args.append(f"--namespaces={','.join(sorted(chosen.namespaces))}")
    if chosen.is_recording:
        args.append(f"--record={RECORD_FOLDER}")
    named = (
        (images.PATTERN_VARIABLE, chosen.slurm_images),
        (images.MARIADB_VARIABLE, chosen.mariadb_image),
        (images.EXPORTER_VARIABLE, chosen.image),
    )
    environment = [{"name": name, "value": value} for name, value in named if value]
    return {
        "name": "manager",
        "image": chosen.image,
        "imagePullPolicy": chosen.pull_policy,
        **({"args": args} if args else {}),
        **({"env": environment} if environment else {}),
        "ports": [
            {"name": "health", "containerPort": HEALTH_PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "resources": RESOURCES,
        **({"volumeMounts": [{"name": "record", "mountPath": RECORD_FOLDER}]} if chosen.is_recording else {}),
    }


def budget(chosen: Installation) -> Manifest:
    """Of several managers one stays while machines are emptied."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": labels(NAME)}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": chosen.metadata(NAME),
        "spec": spec,
    }
