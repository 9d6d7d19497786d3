"""The exporter of a SlurmCluster, and the PodMonitor by which Prometheus finds it.

Ours signs its tokens with a key that is mounted, and needs no account. Soperator's reads that key itself.
"""

import re
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.containers import NodeContainer
from slurm_operator.api.nebius.slurm_nodes import JobSource, SlurmExporter
from slurm_operator.api.shared import names as shared_names
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.workloads import with_input
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Action
from slurm_operator.reconcilers.nebius.shared import pods
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.objects import match_labels
from slurm_operator.reconcilers.nebius.slurmcluster.observe import EXPORTER_KINDS, Seen
from slurm_operator.reconcilers.nebius.slurmcluster.parts import maker, operator_rest_url
from slurm_operator.reconcilers.shared import exporter as shared
from slurm_operator.reconcilers.shared.children import missing_among, surplus
from slurm_operator.reconcilers.shared.parts import is_owned

COMPONENT: Final = "exporter"
_CONTAINER: Final = "exporter"
_HOURS: Final = {"y": 8760, "w": 168, "d": 24}


def exporter(seen: Seen) -> list[Action]:
    """What is missing of it, or left of it when it is no longer wanted."""
    wanted = desired(seen)
    return [*missing_among(wanted, seen.children), *_gone(seen, wanted)]


def _gone(seen: Seen, wanted: list[Manifest]) -> list[Action]:
    """Its account, where it had one, stays until the SlurmCluster goes."""
    kept = {names.exporter(seen.name), names.pod_monitor(seen.name)}
    return [
        delete
        for kind in EXPORTER_KINDS
        for delete in surplus(
            kind,
            [
                child
                for (of_kind, name), child in seen.children.items()
                if of_kind == kind and name in kept and is_owned(child, seen.meta)
            ],
            wanted,
            "the exporter is not wanted",
        )
    ]


def desired(seen: Seen) -> list[Manifest]:
    wished = seen.spec.slurm_nodes.exporter
    container = wished.container
    if not wished.enabled or container is None:
        return []
    monitor = [_pod_monitor(seen)] if seen.has_pod_monitors else []
    return [*_account(seen), _deployment(seen, container), *monitor]


def job_source(seen: Seen) -> JobSource:
    """slurmdbd can be asked only where there is one."""
    has_books = seen.spec.slurm_nodes.accounting.enabled
    return seen.spec.slurm_nodes.exporter.job_source if has_books else JobSource.CONTROLLER


def _deployment(seen: Seen, container: NodeContainer) -> Manifest:
    manifest = maker(seen).object(kinds.DEPLOYMENT, names.exporter(seen.name), COMPONENT)
    labels = match_labels(seen.name, COMPONENT)
    template = {"metadata": {"labels": labels}, "spec": _pod(seen, container)}
    body = {
        "replicas": 0 if seen.is_down else 1,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": labels},
        "template": template,
    }
    annotated = {**manifest["metadata"], "annotations": {}}
    return with_input(manifest | {"metadata": annotated, "spec": body}, template)


def _pod(seen: Seen, container: NodeContainer) -> Manifest:
    wished = seen.spec.slurm_nodes.exporter
    return {
        "enableServiceLinks": False,
        **_identity(seen, wished),
        **pods.filled({"initContainers": wished.custom_init_containers}),
        "containers": [_container(seen, container)],
        **pods.place(seen.spec.filters.get(wished.k8s_node_filter_name)),
        **pods.filled(
            {
                "priorityClassName": wished.priority_class,
                "hostUsers": wished.host_users,
                "imagePullSecrets": pods.pull_secrets(container),
            }
        ),
    }


def _is_ours(seen: Seen) -> bool:
    return seen.family is Family.OURS


def _identity(seen: Seen, wished: SlurmExporter) -> Manifest:
    """Whom the pod is to the API server. With an account of yours, ours reads labels of Kubernetes nodes."""
    account = wished.service_account_name
    if not _is_ours(seen):
        return {"serviceAccountName": account or names.exporter(seen.name)}
    key = SecretHandle(
        namespace=seen.meta.namespace, name=names.rest_jwt_secret(seen.name), key=names.REST_JWT_KEY
    )
    return {
        **({"serviceAccountName": account} if account else {"automountServiceAccountToken": False}),
        "securityContext": shared.POD_SECURITY,
        "volumes": [shared.key_volume(key)],
    }


def _container(seen: Seen, wished: NodeContainer) -> Manifest:
    given = pods.container(wished, is_run_by_us=False)
    ours: Manifest = {"command": [*shared.COMMAND], "volumeMounts": [shared.KEY_MOUNT]}
    confined = shared.CONFINED if _is_ours(seen) else {}
    return {
        **shared.serving(),
        **(ours if _is_ours(seen) else {}),
        **given,
        "name": _CONTAINER,
        "args": [*_flags(seen), *given.get("args", ())],
        "env": [*_variables(seen), *given.get("env", ())],
        "securityContext": {**confined, **given["securityContext"]},
    }


def _flags(seen: Seen) -> list[str]:
    ours = ["--compat=soperator", f"--jwt-key-file={shared.KEY_PATH}"] if _is_ours(seen) else []
    return [
        f"--cluster-namespace={seen.meta.namespace}",
        f"--cluster-name={seen.name}",
        f"--slurm-api-server={operator_rest_url(seen)}",
        *ours,
    ]


def _variables(seen: Seen) -> list[Manifest]:
    wished = seen.spec.slurm_nodes.exporter
    values = {
        "COLLECTION_INTERVAL": _duration(wished.collection_interval),
        "MAX_COLLECTOR_INFLIGHT": str(wished.max_collector_inflight),
        "JOB_SOURCE": str(job_source(seen)),
        "ACCOUNTING_JOBS_LOOKBACK": _duration(wished.accounting_jobs_lookback),
    }
    return [{"name": f"SLURM_EXPORTER_{name}", "value": value} for name, value in values.items() if value]


def _duration(text: str) -> str:
    """As programs in Go take it: `1d12h` of Prometheus is `24h12h`."""
    return re.sub(r"(\d+)([ywd])", lambda found: f"{int(found[1]) * _HOURS[found[2]]}h", text)


def _account(seen: Seen) -> list[Manifest]:
    """For Soperator's exporter: its key, and pods of workers; labels of nodes take an account of yours."""
    if _is_ours(seen) or seen.spec.slurm_nodes.exporter.service_account_name:
        return []
    return maker(seen).account(names.exporter(seen.name), COMPONENT, rules(seen.name))


def rules(cluster: str) -> list[Manifest]:
    key = names.rest_jwt_secret(cluster)
    return [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [key], "verbs": ["get"]},
    ]


# Everywhere, with an account that the manifest names: where Kubernetes nodes are, by their labels.
NODE_RULES: Final[list[Manifest]] = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}]


def _pod_monitor(seen: Seen) -> Manifest:
    """Without the labels that would differ with every new pod; `pod` on the page is a worker's, and stays."""
    wished = seen.spec.slurm_nodes.exporter.pod_monitor_config
    manifest = maker(seen).object(kinds.POD_MONITOR, names.pod_monitor(seen.name), COMPONENT)
    manifest["metadata"]["labels"][shared_names.APP_NAME] = shared.APP
    labels = {
        "relabelings": [{"action": "labeldrop", "regex": "pod|container"}, *wished.relabel_config],
        "metricRelabelings": [{"action": "labeldrop", "regex": "instance"}, *wished.metric_relabel_configs],
    }
    return manifest | {
        "spec": {
            **({"jobLabel": wished.job_label} if wished.job_label else {}),
            "selector": {"matchLabels": match_labels(seen.name, COMPONENT)},
            "podMetricsEndpoints": shared.endpoints(wished.interval, wished.scrape_timeout, labels),
        }
    }
