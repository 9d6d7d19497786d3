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
from slurm_operator.reconcilers.shared.exporter import (
    APP,
    COMMAND,
    CONFINED,
    KEY_MOUNT,
    KEY_PATH,
    POD_SECURITY,
    PORTS,
    endpoints,
    key_volume,
    serving,
)
from slurm_operator.reconcilers.shared.slurm_servers import url


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
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": ours.metadata(names.exporter_workload(seen.restapi.metadata.name)),
        "spec": {
            "selector": ours.selector,
            "ports": [
                {"name": name, "port": port, "protocol": "TCP", "targetPort": name}
                for name, port in PORTS.items()
            ],
        },
    }


def service_monitor(seen: Seen) -> Manifest:
    """Both pages: Slurm's, and the exporter's own."""
    ours, wished = owner(seen.restapi), seen.restapi.spec.exporter.service_monitor
    metadata = ours.metadata(names.exporter_workload(seen.restapi.metadata.name))
    metadata["labels"] = {**metadata["labels"], **wished.labels, **ours.labels}
    return {
        "apiVersion": kinds.SERVICE_MONITOR.api_version,
        "kind": kinds.SERVICE_MONITOR.kind,
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": ours.selector},
            "namespaceSelector": {"matchNames": [seen.restapi.metadata.namespace]},
            "endpoints": endpoints(wished.interval, wished.scrape_timeout),
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
        f"--jwt-key-file={KEY_PATH}",
        f"--slurm-user={seen.slurm_user}",
        *compat,
        *wished.args,
    ]


def pod(seen: Seen, key: SecretHandle) -> Manifest:
    base: Manifest = {
        "securityContext": POD_SECURITY,
        "containers": [container(seen)],
        "volumes": [key_volume(key)],
    }
    return parts.pod_spec(base, seen.restapi.spec.exporter.template, required=(APP,))


def container(seen: Seen) -> Manifest:
    return {
        "name": APP,
        "image": image(seen),
        "command": [*COMMAND],
        "args": arguments(seen),
        "securityContext": CONFINED,
        **serving(),
        "volumeMounts": [KEY_MOUNT],
    }
