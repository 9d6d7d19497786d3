"""The exporter beside slurmrestd: a Deployment, a Service, and where there are any a ServiceMonitor."""

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.images import default_image
from slurm_operator.api.slinky.exporter import ExporterCompat
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders import parts
from slurm_operator.manifests.builders.workloads import Wish, with_input
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Action
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.restapi.observe import EXPORTER_KINDS, Seen
from slurm_operator.reconcilers.shared.children import among, missing_among, surplus, taken
from slurm_operator.reconcilers.shared.dependencies import Need
from slurm_operator.reconcilers.shared.slurm_servers import url

APP = "slurm-exporter"
KEY_FOLDER = "/etc/slurm-exporter"
KEY_FILE = "jwt.key"
METRICS_PORT, MONITORING_PORT = 8080, 8081
UID = 65532


def exporter(seen: Seen) -> Lane:
    """What is missing of it, or left of it when it is no longer wanted."""
    if isinstance(seen.jwt_key, Need):
        return lane("exporter", [seen.jwt_key.wait])
    wanted = desired(seen)
    strangers = taken(wanted, among(seen.exporter_children))
    return lane(
        "exporter", [*missing_among(wanted, seen.exporter_children), *strangers, *_gone(seen, wanted)]
    )


def desired(seen: Seen) -> list[Manifest]:
    """Nothing, unless it is switched on."""
    if not seen.restapi.spec.exporter.enabled or not isinstance(seen.jwt_key, SecretHandle):
        return []
    monitor = [service_monitor(seen)] if seen.has_service_monitors and _is_monitored(seen) else []
    return [service(seen), deployment(seen, seen.jwt_key), *monitor]


def _gone(seen: Seen, wanted: list[Manifest]) -> list[Action]:
    why = "the exporter is not wanted"
    return [delete for kind in EXPORTER_KINDS for delete in surplus(kind, _own(seen, kind), wanted, why)]


def _own(seen: Seen, kind: Kind) -> list[Child]:
    meta = seen.restapi.metadata
    found = [child for (of_kind, _), child in seen.exporter_children.items() if of_kind == kind]
    return [
        child for child in found if child.metadata.owner is not None and child.metadata.owner.uid == meta.uid
    ]


def _is_monitored(seen: Seen) -> bool:
    return seen.restapi.spec.exporter.service_monitor.enabled


def owner(restapi: RestApi) -> parts.Owner:
    labels = restapi.spec.children.labels
    return parts.Owner(RestApi.KIND, restapi.metadata, app=APP, component="metrics", labels=labels)


def service(seen: Seen) -> Manifest:
    ours = owner(seen.restapi)
    ports = (("metrics", METRICS_PORT), ("monitoring", MONITORING_PORT))
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": ours.metadata(names.exporter_workload(seen.restapi.metadata.name)),
        "spec": {
            "selector": ours.selector,
            "ports": [
                {"name": name, "port": port, "protocol": "TCP", "targetPort": name} for name, port in ports
            ],
        },
    }


def service_monitor(seen: Seen) -> Manifest:
    """Both pages: Slurm's, and the exporter's own."""
    ours, wished = owner(seen.restapi), seen.restapi.spec.exporter.service_monitor
    metadata = ours.metadata(names.exporter_workload(seen.restapi.metadata.name))
    metadata["labels"] = {**metadata["labels"], **wished.labels, **ours.labels}
    times = {"interval": wished.interval, "scrapeTimeout": wished.scrape_timeout}
    said = {key: value for key, value in times.items() if value}
    # Labels of the page win over those of the target: `namespace` and `pod` there are a worker's.
    endpoints = [
        {"path": "/metrics", "port": port, "honorLabels": True, **said} for port in ("metrics", "monitoring")
    ]
    return {
        "apiVersion": kinds.SERVICE_MONITOR.api_version,
        "kind": kinds.SERVICE_MONITOR.kind,
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": ours.selector},
            "namespaceSelector": {"matchNames": [seen.restapi.metadata.namespace]},
            "endpoints": endpoints,
        },
    }


def deployment(seen: Seen, key: SecretHandle) -> Manifest:
    """One replica: each would show the same. A new one is there before the old one is gone."""
    ours, wished = owner(seen.restapi), seen.restapi.spec.exporter
    metadata = ours.pod_metadata(wished.template, APP)
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": ours.metadata(
            names.exporter_workload(seen.restapi.metadata.name), wished.template.metadata
        ),
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": ours.selector},
            "template": {"metadata": metadata, "spec": pod(seen, key)},
        },
    }
    return with_input(
        manifest,
        metadata,
        Wish(wished.template),
        [image(seen), *arguments(seen), key.name, key.key],
    )


def image(seen: Seen) -> str:
    return seen.restapi.spec.exporter.image or default_image("exporter")


def arguments(seen: Seen) -> list[str]:
    wished = seen.restapi.spec.exporter
    compat = [] if wished.compat is ExporterCompat.NONE else [f"--compat={wished.compat}"]
    return [
        f"--cluster-name={seen.cluster_name}",
        f"--slurm-api-server={url(seen.restapi)}",
        f"--jwt-key-file={KEY_FOLDER}/{KEY_FILE}",
        f"--slurm-user={seen.slurm_user}",
        *compat,
        *wished.args,
    ]


def pod(seen: Seen, key: SecretHandle) -> Manifest:
    base: Manifest = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "fsGroup": UID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(seen)],
        "volumes": [parts.projected("key", 0o400, parts.secret_file(key.name, key.key, KEY_FILE))],
    }
    return parts.pod_spec(base, seen.restapi.spec.exporter.template, required=(APP,))


def container(seen: Seen) -> Manifest:
    return {
        "name": APP,
        "image": image(seen),
        "command": ["slurm-operator", "exporter"],
        "args": arguments(seen),
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "monitoring", "containerPort": MONITORING_PORT, "protocol": "TCP"},
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "1Gi"}},
        "readinessProbe": parts.http_probe("/health", "metrics", period_seconds=5, failures=3),
        "livenessProbe": parts.http_probe("/health", "metrics", period_seconds=10, failures=6),
        "volumeMounts": [{"name": "key", "mountPath": KEY_FOLDER, "readOnly": True}],
    }
