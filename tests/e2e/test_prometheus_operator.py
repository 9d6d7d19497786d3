"""The Prometheus operator beside ours: a Prometheus finds everything by the objects that charts and operator make."""

import uuid

import pytest
from e2e_pods import make_namespace
from helm_rig import CHARTS, HOME, Helm
from operator_rig import until

from slurm_local import image
from slurm_local.progress import Quiet
from testing import neighbours

pytestmark = pytest.mark.minutes

SERVICE = "prometheus-operated"  # The Prometheus operator calls it so.

VALUES = {"serviceMonitor": {"enabled": True, "interval": "2s"}, "prometheusRule": {"enabled": True}}
MONITOR = {"enabled": True, "interval": "2s"}
SPEC = {
    "isolation": "process",
    "nodeSets": [{"name": "cpu", "replicas": 1}],
    "controller": {"metrics": {"enabled": True, "serviceMonitor": MONITOR}},
    "restApi": {"exporter": {"enabled": True, "args": ["--collection-interval=2s"], "serviceMonitor": MONITOR,
                             "template": {"spec": {"containers": [{"name": "slurm-exporter", "imagePullPolicy": "Never"}]}}}},
}  # fmt: skip


@pytest.fixture(scope="module")
def helm(fragile_cluster, paths) -> Helm:
    fragile_cluster.load_image(image.operator_archive(paths, Quiet()))
    neighbours.install_prometheus_operator(fragile_cluster, paths)
    helm = Helm(fragile_cluster)
    helm("install", "slurm-operator-crds", str(CHARTS / "slurm-operator-crds"))
    fragile_cluster.kubectl("create", "namespace", HOME)
    helm.install_operator(monitoring=VALUES)
    # As the guide about monitoring has it.
    fragile_cluster.kubectl(
        "create", "clusterrolebinding", "prometheus-slurm-operator",
        "--clusterrole=slurm-operator-metrics-reader", f"--serviceaccount={neighbours.MONITORING}:prometheus",
    )  # fmt: skip
    return helm


def test_prometheus_scrapes_the_operator_slurmctld_and_the_exporter_and_has_our_alerts(helm):
    namespace = f"seen-{uuid.uuid4().hex[:6]}"
    make_namespace(helm.cluster, namespace)
    metadata = {"name": "demo", "namespace": namespace}
    helm.cluster.apply([
        {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Cluster", "metadata": metadata, "spec": SPEC}
    ])  # fmt: skip

    for expression in (
        "slurm_operator_reconciles_total",
        f'slurm_jobs_running{{namespace="{namespace}"}}',
        f'slurm_partition_nodes{{namespace="{namespace}"}}',
        f'slurm_pool_nodes{{namespace="{namespace}"}}',
        f'slurm_exporter_series_dropped{{namespace="{namespace}"}}',
    ):
        until(lambda one=expression: values(helm, one), 240, lambda one=expression: f"{one}: {targets(helm)}")
    wrong = [one for one in targets(helm) if one["health"] != "up"]
    assert wrong == []

    groups = neighbours.ask_prometheus(helm.cluster, SERVICE, "rules")["groups"]
    alerts = {rule["name"] for group in groups for rule in group["rules"] if rule["type"] == "alerting"}
    assert {"SlurmOperatorHasNoLeader", "SlurmExporterStale", "SlurmQueueStuck"} <= alerts
    assert [rule for group in groups for rule in group["rules"] if rule["health"] != "ok"] == []


def values(helm: Helm, expression: str) -> list:
    return neighbours.ask_prometheus(helm.cluster, SERVICE, "query", query=expression)["result"]


def targets(helm: Helm) -> list[dict]:
    found = neighbours.ask_prometheus(helm.cluster, SERVICE, "targets")["activeTargets"]
    return [{key: one[key] for key in ("scrapePool", "scrapeUrl", "health", "lastError")} for one in found]
