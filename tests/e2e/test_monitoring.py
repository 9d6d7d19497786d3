"""The exporter by a switch of a Cluster, and a real Prometheus that reads operator, exporter and slurmctld."""

import json
import os
import re
import socket
import time
from pathlib import Path

import pytest
from operator_rig import install, until
from test_cluster_kind import Demo

from slurm_local.errors import LocalError
from slurm_local.slurm_cluster import OPERATOR_NAMESPACE
from testing import dashboard_pictures, dashboards
from testing.prometheus import running

pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

EXPORTER = {"enabled": True, "args": ["--collection-interval=1s"], "template": {"spec": {"containers": [{"name": "slurm-exporter", "imagePullPolicy": "Never"}]}}}  # fmt: skip

# No GPUs there, no drains, and nothing that ended badly.
ELSEWHERE = {
    "GPUs of each pool",
    "Oldest drain",
    "Node-seconds out of service",
    "Jobs that ended badly",
    "Failures",
}


@pytest.fixture
def demo(cluster, operator_image):
    install(cluster, operator_image)
    made = Demo(
        cluster,
        {
            "nodeSets": [{"name": "cpu", "replicas": 1}],
            "controller": {"metrics": {"enabled": True}},
            "restApi": {"exporter": EXPORTER},
        },
    )
    yield made
    made.cluster.kubectl("delete", "cluster/demo", "-n", made.namespace, "--wait=false")


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def pod_address(cluster, namespace: str, selector: str) -> str:
    found = json.loads(cluster.kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", "json"))["items"]
    ready = [
        pod["status"]["podIP"]
        for pod in found
        if any(
            one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ())
        )
    ]
    return ready[0] if ready else ""


def test_every_panel_and_alert_of_the_chart_is_evaluated_on_a_real_cluster(demo, tmp_path: Path):
    demo.wait_ready()
    exporter = "app.kubernetes.io/name=slurm-exporter"
    until(lambda: pod_address(demo.cluster, demo.namespace, exporter), 120, lambda: demo.get("pods"))
    where = {
        "exporter": pod_address(demo.cluster, demo.namespace, exporter),
        "slurmctld": pod_address(demo.cluster, demo.namespace, "app.kubernetes.io/name=slurmctld"),
        "operator": pod_address(demo.cluster, OPERATOR_NAMESPACE, "app.kubernetes.io/name=slurm-operator"),
    }
    targets = {
        "exporter": [f"http://{where['exporter']}:{port}/metrics" for port in (8080, 8081)],
        "slurmctld": [f"http://{where['slurmctld']}:6817/metrics/{name}" for name in ("jobs", "nodes")],
        "operator": [f"http://{where['operator']}:8080/metrics"],
    }
    rules = tmp_path / "alerts.yaml"
    rules.write_text(
        re.sub(r"^( +for:) .*$", r"\1 0s", (dashboards.FILES / "alerts.yaml").read_text(), flags=re.MULTILINE)
    )
    network = Path(f"/proc/{demo.cluster.state.cell.first.pid}/ns/net")  # Only there pods have addresses.
    with running(tmp_path / "prometheus", free_port(), targets, [rules], network) as prometheus:
        prometheus.wait_for_targets()
        demo.run("sbatch", "--wrap", "sleep 600", "--output=/dev/null", "--exclusive")
        demo.run("sbatch", "--wrap", "sleep 600", "--output=/dev/null", "--exclusive")

        asked = [pair for path in dashboards.files() for pair in dashboards.expressions(path)]
        left = {(title, one): one for title, one in asked if title not in ELSEWHERE}
        end = time.monotonic() + 120
        while left and time.monotonic() < end:
            left = {key: one for key, one in left.items() if not prometheus.value(one)}
            time.sleep(1)
        assert not left, f"no value for {left}"
        for _, expression in asked:
            prometheus.value(expression)
        for alert in dashboards.alerts():
            prometheus.value(alert["expr"])  # Raises when it is no expression.
        if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
            dashboard_pictures.write(dashboards.files()[0], prometheus.since_start)

        pods = prometheus.value("slurm_node_pod_info")
        assert {one.labels["pool"] for one in pods} == {"demo-cpu"}
        ready = prometheus.value('slurm_operator_condition{type="Ready",name="demo",resource="clusters"}')
        assert [one.value for one in ready if one.labels["namespace"] == demo.namespace] == [1]

        demo.apply({
            "nodeSets": [{"name": "cpu", "replicas": 1}],
            "controller": {"metrics": {"enabled": True}},
            "restApi": {"exporter": EXPORTER},
            "extraConf": "NoSuchOption=yes\n",
        })  # fmt: skip
        prometheus.until(lambda: "SlurmOperatorConfigurationRefused" in prometheus.firing(), "the alert", 120)

    demo.apply({"nodeSets": [{"name": "cpu", "replicas": 1}], "controller": {"metrics": {"enabled": True}}})
    until(lambda: _is_gone(demo), 60, lambda: demo.get("deployments"))


def _is_gone(demo: Demo) -> bool:
    try:
        demo.get("deployment/demo-metrics")
    except LocalError:
        return True
    return False
