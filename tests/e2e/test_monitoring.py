"""The exporter by a switch of a Cluster, and a real Prometheus that reads operator, exporter and slurmctld."""

import json
import os
import socket
import time
from pathlib import Path

import pytest
from operator_rig import install, until
from test_cluster_kind import Demo

from slurm_local.errors import LocalError
from slurm_local.slurm_cluster import OPERATOR_NAMESPACE, wait_started
from testing import dashboard_pictures, dashboards
from testing.prometheus import Prometheus, running

pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

EXPORTER = {"enabled": True, "args": ["--collection-interval=1s"], "template": {"spec": {"containers": [{"name": "slurm-exporter", "imagePullPolicy": "Never"}]}}}  # fmt: skip

POLICY = "slurm-operator-workers"

# No GPUs there, no drains, and nothing that ended badly.
ELSEWHERE = {
    "GPUs of each pool",
    "Oldest drain",
    "Node-seconds out of service",
    "Jobs that ended badly",
    "Failures",
}


SPEC = {
    "nodeSets": [{"name": "cpu", "replicas": 1, "podInfoInComment": True}],
    "controller": {"metrics": {"enabled": True}},
    "restApi": {"exporter": EXPORTER},
}

# Those that something has to be wrong for, which is done below.
OF_THE_OPERATOR = {
    "SlurmOperatorHasNoLeader",
    "SlurmOperatorSlurmUnreachable",
    "SlurmOperatorErrors",
    "SlurmOperatorWorkersUnprotected",
    "SlurmOperatorWatchSilent",
    "SlurmOperatorEventLoopLags",
    "SlurmOperatorUnreadableObjects",
    "SlurmOperatorNoProgress",
    "SlurmOperatorConfigurationRefused",
    "SlurmOperatorNodeMismatch",
    "SlurmOperatorTokenNearExpiry",
}


@pytest.fixture
def demo(cluster, operator_image):
    install(cluster, operator_image)
    # The operator looks for the policy when it starts.
    cluster.kubectl("delete", "validatingadmissionpolicybinding", POLICY)
    scale_operator(cluster, 0)
    scale_operator(cluster, 1)
    made = Demo(cluster, SPEC)
    yield made
    made.cluster.kubectl("delete", "cluster/demo", "-n", made.namespace, "--wait=false")
    made.cluster.kubectl(
        "delete", "controller/other", "-n", made.namespace, "--wait=false", "--ignore-not-found"
    )
    install(cluster, operator_image)


def scale_operator(cluster, replicas: int) -> None:
    where = ("-n", OPERATOR_NAMESPACE)
    cluster.kubectl("scale", "deployment/slurm-operator", f"--replicas={replicas}", *where)
    if replicas:
        wait_started(cluster, "slurm-operator")
    else:
        selector = ("-l", "app.kubernetes.io/name=slurm-operator")
        cluster.kubectl("wait", "--for=delete", "pod", *selector, "--timeout=60s", *where, timeout_s=70)


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
    network = Path(f"/proc/{demo.cluster.state.cell.first.pid}/ns/net")  # Only there pods have addresses.
    rules = [dashboards.rules_at_once(tmp_path)]
    with running(tmp_path / "prometheus", free_port(), targets, rules, network) as prometheus:
        prometheus.wait_for_targets()
        demo.run("sbatch", "--wrap", "sleep 600", "--output=/dev/null", "--exclusive")
        demo.run("sbatch", "--wrap", "sleep 600", "--output=/dev/null", "--exclusive")
        _every_panel_has_a_value(prometheus)
        _the_exporter_knows_the_pod(demo, prometheus)
        if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
            dashboard_pictures.write(dashboards.files()[0], prometheus.since_start)
        _each_alert_about_the_operator_fires(demo, prometheus)

    demo.apply({**SPEC, "restApi": {}})
    until(lambda: _is_gone(demo), 60, lambda: demo.get("deployments"))


def _every_panel_has_a_value(prometheus: Prometheus) -> None:
    asked = [pair for path in dashboards.files() for pair in dashboards.expressions(path)]
    left = [(title, one) for title, one in asked if title not in ELSEWHERE]
    end = time.monotonic() + 120
    while left and time.monotonic() < end:
        left = [pair for pair in left if not prometheus.value(pair[1])]
        time.sleep(1)
    assert not left, f"no value for {left}"
    for expression in (*dict(asked).values(), *(alert["expr"] for alert in dashboards.alerts())):
        prometheus.value(expression)  # Raises when it is no expression.


def _the_exporter_knows_the_pod(demo: Demo, prometheus: Prometheus) -> None:
    """The operator notes it after the worker is ready, and the exporter reads it after that."""
    (pod,) = prometheus.value("slurm_node_pod_info")
    assert (pod.labels["pool"], pod.labels["namespace"]) == ("demo-cpu", demo.namespace)
    assert f"pod/{pod.labels['pod']}" in demo.get("pods", "-o", "name").split()
    assert pod.labels["kube_node"] == demo.get("pod", pod.labels["pod"], "-o", "jsonpath={.spec.nodeName}")
    ready = prometheus.value('slurm_operator_condition{type="Ready",name="demo",resource="clusters"}')
    assert [one.value for one in ready if one.labels["namespace"] == demo.namespace] == [1]


def _each_alert_about_the_operator_fires(demo: Demo, prometheus: Prometheus) -> None:
    _make_trouble(demo)
    silent, end = OF_THE_OPERATOR - {"SlurmOperatorHasNoLeader"}, time.monotonic() + 150
    while silent and time.monotonic() < end:
        silent -= prometheus.firing()
        time.sleep(0.5)
    assert not silent, (
        f"these did not fire: {silent}; {demo.get('nodesets,controllers,tokens', '-o', 'yaml')}"
    )
    scale_operator(demo.cluster, 0)
    prometheus.until(
        lambda: "SlurmOperatorHasNoLeader" in prometheus.firing(), "SlurmOperatorHasNoLeader to fire"
    )
    scale_operator(demo.cluster, 1)


def _make_trouble(demo: Demo) -> None:
    """A configuration that is refused, a write that is, a worker that is not itself, and a token that ends."""

    def ours(kind: str, name: str, spec: dict) -> dict:
        metadata = {"name": name, "namespace": demo.namespace}
        return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}

    taken = {"name": "slurm-workers-other", "namespace": demo.namespace}
    demo.cluster.apply([
        {"apiVersion": "v1", "kind": "Service", "metadata": taken, "spec": {"selector": {"hers": "yes"}, "ports": [{"port": 80}]}},
        ours("Controller", "other", {}),
        ours("Token", "short", {"controllerRef": {"name": "demo"}, "username": "alice", "lifetime": "1h", "refresh": False}),
    ])  # fmt: skip
    demo.apply({**SPEC, "extraConf": "NoSuchOption=yes\n"})
    worker = demo.run("sinfo", "--noheader", "--format=%n").split()[0]
    demo.run(
        "scontrol", "update", f"nodename={worker}", "availablefeatures=another", "activefeatures=another"
    )


def _is_gone(demo: Demo) -> bool:
    try:
        demo.get("deployment/demo-metrics")
    except LocalError:
        return True
    return False
