"""The local cluster is a real Kubernetes: networks, names, volumes, exec, budgets, drains."""

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from e2e_pods import address, ask, run, server, service, wait_named

from slurm_local.build import versions
from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_local.kubernetes.api_call import Refused
from slurm_local.machine.cell import wait_until


def test_every_node_runs_the_pinned_version(cluster: Cluster) -> None:
    versions_seen = {node["status"]["nodeInfo"]["kubeletVersion"] for node in cluster.items("/api/v1/nodes")}

    assert versions_seen == {f"v{versions.KUBERNETES}"}


def test_pods_talk_to_each_other_on_one_node_and_across_nodes(cluster: Cluster, namespace: str) -> None:
    run(cluster, namespace, server("here", "node-1"), server("near", "node-1"), server("far", "node-2"))

    answers = [ask(cluster, namespace, "here", address(cluster, namespace, pod)) for pod in ("near", "far")]

    assert answers == ["near", "far"]


def test_a_service_leads_to_its_pods_from_every_node(cluster: Cluster, namespace: str) -> None:
    run(cluster, namespace, service("front"), server("one", "node-1"), server("two", "node-2"))

    # The one that asks may be the one that answers: the packet comes back to where it started.
    for pod in ("one", "two"):
        assert {ask(cluster, namespace, pod, "front") for _ in range(12)} == {"one", "two"}


def test_pods_of_a_headless_service_have_names_that_follow_them(cluster: Cluster, namespace: str) -> None:
    run(cluster, namespace, service("servers", clusterIP="None"), server("a"), server("b", "node-1"))
    wait_named(cluster, namespace, "a", f"b.servers.{namespace}.svc.cluster.local", "b")
    before = address(cluster, namespace, "b")

    cluster.kubectl("delete", "pod", "b", "-n", namespace)
    run(cluster, namespace, server("b", "node-2"))

    assert address(cluster, namespace, "b") != before
    wait_named(cluster, namespace, "a", "b.servers", "b")


def test_names_outside_the_cluster_do_not_exist(cluster: Cluster, namespace: str) -> None:
    run(cluster, namespace, server("a"))

    with pytest.raises(LocalError, match="command terminated with exit code 2"):
        cluster.kubectl("exec", "-n", namespace, "a", "--", "getent", "hosts", "example.com", timeout_s=30)


def test_a_pod_cannot_reach_this_machine(cluster: Cluster, namespace: str) -> None:
    run(cluster, namespace, server("a"))
    with socket.create_server((cluster.state.link.here, 8080)):
        reached = "IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 8080, Timeout => 5) or die"
        cluster.state.cell.run("perl", "-MIO::Socket::INET", "-e", reached, cluster.state.link.here)

        with pytest.raises(LocalError):
            ask(cluster, namespace, "a", cluster.state.link.here)


def test_logs_and_exec_reach_pods_on_every_node(cluster: Cluster, namespace: str) -> None:
    run(cluster, namespace, server("one", "node-1"), server("two", "node-2"))

    for pod in ("one", "two"):
        assert cluster.kubectl("logs", "-n", namespace, pod) == "listening\n"
        assert cluster.kubectl("exec", "-n", namespace, pod, "--", "hostname") == f"{pod}\n"
        said = cluster.kubectl("exec", "-i", "-n", namespace, pod, "--", "cat", stdin="over there and back")
        assert said == "over there and back"


def test_a_volume_is_writable_without_root_and_outlives_its_pod(cluster: Cluster, namespace: str) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}},
    }

    def with_data(name: str, node: str) -> dict[str, Any]:
        pod = server(name, node, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        pod["spec"]["securityContext"] = {"runAsUser": 401, "runAsGroup": 401}
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        return pod

    run(cluster, namespace, claim, with_data("first", "node-1"))
    cluster.kubectl("exec", "-n", namespace, "first", "--", "sh", "-c", "echo kept > /data/file")
    cluster.kubectl("delete", "pod", "first", "-n", namespace)
    run(cluster, namespace, with_data("second", "node-2"))

    assert cluster.kubectl("exec", "-n", namespace, "second", "--", "cat", "/data/file") == "kept\n"


def test_a_volume_s_directory_goes_with_its_claim(cluster: Cluster, namespace: str) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "brief"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    run(cluster, namespace, claim)
    cluster.kubectl(
        "wait", "-n", namespace, "--for=jsonpath={.status.phase}=Bound", "pvc/brief", "--timeout=30s"
    )
    volume = cluster.kubectl("get", "pvc", "brief", "-n", namespace, "-o", "jsonpath={.spec.volumeName}")
    directory = cluster.directory / "volumes" / volume
    assert directory.is_dir()

    cluster.kubectl("delete", "pvc", "brief", "-n", namespace)

    wait_until(lambda: not directory.exists(), "the volume's directory to go")


def test_an_eviction_that_would_break_a_budget_is_refused(cluster: Cluster, namespace: str) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all", "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "server"}}},
    }
    run(cluster, namespace, server("only"), budget)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "only", "namespace": namespace},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/only/eviction"

    with pytest.raises(Refused) as refusal:
        cluster.caller.call("POST", path, eviction)
    assert refusal.value.status == 429

    cluster.kubectl("delete", "pdb", "all", "-n", namespace)
    cluster.caller.call("POST", path, eviction)
    cluster.kubectl("wait", "-n", namespace, "--for=delete", "pod/only", "--timeout=30s")


def test_pods_that_ran_before_a_network_namespace_was_made_can_still_go(
    cluster: Cluster, namespace: str
) -> None:
    run(cluster, namespace, server("early"))
    # Out here, as a user would: the first one ever puts a mount over the directory of all namespaces.
    name = f"trap-{namespace}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        cluster.kubectl("delete", "pod", "early", "-n", namespace, "--timeout=30s")
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def test_the_kubeconfig_is_its_owner_s_alone(cluster: Cluster) -> None:
    private = [
        cluster.kubeconfig,
        *cluster.directory.glob("*.kubeconfig"),
        *cluster.directory.glob("pki/*.key"),
    ]

    assert {oct(path.stat().st_mode & 0o777) for path in private} == {"0o600"}
    assert oct(cluster.directory.stat().st_mode & 0o777) == "0o700"


def test_nothing_of_the_cluster_listens_on_this_machine(cluster: Cluster) -> None:
    sockets = [
        line.split() for file in ("tcp", "tcp6") for line in Path("/proc/net", file).read_text().splitlines()
    ]
    listening = {int(fields[1].rpartition(":")[2], 16) for fields in sockets if fields[3] == "0A"}

    assert not listening & {6443, 2379, 2380, 10250, 8181}
