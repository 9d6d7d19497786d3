"""Clusters on a real API server: what ten lines become, what is put back, what is left alone, what goes."""

import json
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import yaml
from kinds_rig import (
    apply,
    get,
    merge,
    ns,
    operator,
    ours,
    owner_of,
    refusals,
    secret,
    wait_for,
    wait_reason,
    writes_by,
)  # fmt: skip

from testing.examples import EXAMPLES, example_lines
from testing.golden import golden_manifests
from testing.managers import ManagerProcess, running_manager, until
from testing.overheard import served

__all__ = ["ns"]

GOLDEN = golden_manifests("cluster")
RECORDED = Path(__file__).parents[1] / "slurm" / "recorded"
COMPOSED = {"Controller", "LoginSet", "NodeSet", "RestApi"}
PARTS = ("accountings", "controllers", "loginsets", "nodesets", "restapis", "tokens")


@pytest.mark.parametrize("name", GOLDEN)
def test_the_api_server_takes_every_golden_manifest(plane, ns, name):
    assert refusals(plane, ns, GOLDEN[name]) == []


@pytest.mark.parametrize(("name", "most"), [("cluster-smallest", 10), ("cluster-mariadb", 15)])
def test_a_first_cluster_takes_few_lines(name, most):
    assert len(example_lines(name)) <= most


def applied_example(plane, ns: str, name: str) -> None:
    manifest = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    apply(plane, manifest | {"metadata": {**manifest["metadata"], "namespace": ns}})


def parts(plane, ns: str) -> set[tuple[str, str]]:
    """Everything of our kinds in the namespace, but Clusters."""
    found = json.loads(plane.kubectl("get", ",".join(PARTS), "-n", ns, "-o", "json"))["items"]
    return {(thing["kind"], thing["metadata"]["name"]) for thing in found}


def events(plane, ns: str) -> list[tuple[str, str, str]]:
    found = json.loads(plane.kubectl("get", "events.events.k8s.io", "-n", ns, "-o", "json"))["items"]
    return [(event["regarding"]["kind"], event["reason"], event["note"]) for event in found]


def idle_passes(manager: ManagerProcess) -> bool:
    done = 'reconciles_total{reconciler="cluster",result="done"}'
    return done in manager.get("/metrics", manager.metrics)[1]


def test_ten_lines_become_a_cluster_that_is_kept_as_it_should_be(plane, ns, tmp_path):
    applied_example(plane, ns, "cluster-smallest")
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        expected = {("Controller", "demo"), ("RestApi", "demo"), ("NodeSet", "demo-cpu")}
        until(lambda: parts(plane, ns) == expected, what="exactly these parts")
        for kind, name in expected:
            assert owner_of(get(plane, ns, kind, name)) == ("Cluster", "demo")
        assert (
            "CgroupPlugin=autodetect"
            in wait_for(plane, ns, "configmap", "demo-cgroup")["data"]["cgroup.conf"]
        )
        assert get(plane, ns, "nodeset", "demo-cpu")["spec"]["replicas"] == 2
        wait_reason(plane, ns, "cluster", "demo", "NoDefaultStorageClass", "Persistent")
        assert get(plane, ns, "controller", "demo")["spec"]["persistence"]["enabled"] is False

        merge(
            plane,
            ns,
            "restapi",
            "demo",
            {"spec": {"replicas": 4, "template": {"spec": {"hostNetwork": True}}}},
        )
        merge(plane, ns, "nodeset", "demo-cpu", {"spec": {"replicas": 9, "minReadySeconds": 5}})
        until(lambda: put_right(plane, ns), what="direct edits put back")
        until(
            lambda: (
                {("Cluster", "PutBack"), ("Cluster", "Scaled")} <= {event[:2] for event in events(plane, ns)}
            ),
            what="events that say so",
        )
        notes = [note for _, _, note in events(plane, ns)]
        assert any("an edit of RestApi demo (" in note and "spec.replicas" in note for note in notes), notes
        until(
            lambda: "slinky.slurm.net/in-use" in get(plane, ns, "cluster", "demo")["metadata"]["finalizers"]
        )
        wide = plane.kubectl("get", "clusters", "-n", ns)
        assert wide.split()[:6] == ["NAME", "READY", "VERSION", "NODES", "RUNNING", "PENDING"]
        wait_at_rest(plane, ns)

    with running_manager(operator(plane, f"again-{ns}"), tmp_path / "again", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(lambda: idle_passes(manager), what="a pass with nothing to do")
    assert [write for write in writes_by(plane, f"again-{ns}") if is_about_clusters(write)] == []


def wait_at_rest(plane, ns: str) -> None:
    """Until nothing about the Cluster has changed for some seconds: what was begun has been told."""
    versions: list[str] = []

    def is_at_rest() -> bool:
        versions.append(get(plane, ns, "cluster", "demo")["metadata"]["resourceVersion"])
        time.sleep(1)
        return len(versions) > 5 and len(set(versions[-5:])) == 1

    until(is_at_rest, what="the Cluster to be at rest")


def put_right(plane, ns: str) -> bool:
    rest, workers = get(plane, ns, "restapi", "demo")["spec"], get(plane, ns, "nodeset", "demo-cpu")["spec"]
    is_plain = not rest["template"]["spec"] if "spec" in rest.get("template", {}) else True
    return rest["replicas"] == 1 and is_plain and workers["replicas"] == 2 and workers["minReadySeconds"] == 0


def is_about_clusters(write: str) -> bool:
    """A write of the Cluster's reconciler: to a part itself, not to what a part says about itself."""
    path = write.split()[1].partition("?")[0]
    return "/clusters/" in path or "demo-cgroup" in path or (
        any(f"/{kind}" in path for kind in PARTS) and not path.endswith("/status")
    )  # fmt: skip


def test_workers_that_somebody_else_scales_are_left_alone_and_a_removed_entry_goes(plane, ns, tmp_path):
    entries = [{"name": "cpu", "ordinalPadding": 3}, {"name": "gpu", "replicas": 0}]
    apply(plane, ours("Cluster", ns, "demo", {"nodeSets": entries}))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        wait_for(plane, ns, "nodeset", "demo-cpu")
        assert wait_for(plane, ns, "nodeset", "demo-gpu")["spec"]["replicas"] == 0

        plane.kubectl("scale", "nodeset", "demo-cpu", "-n", ns, "--replicas=3")
        changed = [{"name": "cpu", "minReadySeconds": 7}]
        apply(plane, ours("Cluster", ns, "demo", {"nodeSets": changed}))

        until(lambda: get(plane, ns, "nodeset", "demo-gpu") is None, what="the removed entry gone")
        until(
            lambda: get(plane, ns, "nodeset", "demo-cpu")["spec"]["minReadySeconds"] == 7, what="the change"
        )
        until(
            lambda: get(plane, ns, "nodeset", "demo-cpu")["spec"]["ordinalPadding"] == 0,
            what="what it was made with dropped",
        )
        assert get(plane, ns, "nodeset", "demo-cpu")["spec"]["replicas"] == 3

        apply(plane, ours("Cluster", ns, "demo", {"nodeSets": [{"name": "cpu", "replicas": 0}]}))
        until(
            lambda: get(plane, ns, "nodeset", "demo-cpu")["spec"]["replicas"] == 0,
            what="now it says how many",
        )
        until(
            lambda: get(plane, ns, "nodeset", "demo-cpu")["spec"]["minReadySeconds"] == 0,
            what="the field dropped",
        )
        apply(plane, ours("Cluster", ns, "demo", {"nodeSets": [{"name": "cpu"}]}))
        until(
            lambda: get(plane, ns, "cluster", "demo")["status"]["observedGeneration"] == 4,
            what="handed over again",
        )
        assert get(plane, ns, "nodeset", "demo-cpu")["spec"]["replicas"] == 0


def test_a_cluster_goes_in_order_and_entirely(plane, ns, tmp_path):
    applied_example(plane, ns, "cluster-login")
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(lambda: {kind for kind, _ in parts(plane, ns)} == COMPOSED, what="every part of it")
        until(lambda: get(plane, ns, "cluster", "demo")["metadata"].get("finalizers"), what="the finalizer")

        plane.kubectl("delete", "cluster", "demo", "-n", ns, "--wait=false")

        until(lambda: get(plane, ns, "cluster", "demo") is None, what="the Cluster gone")
        assert parts(plane, ns) == set()
    deleted = [
        write.rpartition("/")[0].rpartition("/")[2]
        for write in writes_by(plane, f"op-{ns}")
        if is_deletion(write)
    ]
    assert deleted == ["nodesets", "loginsets", "restapis", "controllers"]


def is_deletion(write: str) -> bool:
    return write.startswith("delete ") and any(f"/{kind}/" in write for kind in PARTS)


class Elsewhere(BaseHTTPRequestHandler):
    """A slurmrestd with recorded answers, that notes what it is asked."""

    heard: list[tuple[str, str]]

    def do_GET(self) -> None:
        self.heard.append((self.command, self.headers.get("X-SLURM-USER-TOKEN", "")))
        name = self.path.split("?")[0].strip("/").rpartition("/")[2]
        path = RECORDED / f"{name}.json"
        status, body = (200, json.loads(path.read_text())["body"]) if path.exists() else (404, {"errors": []})
        sent = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_POST = do_DELETE = do_GET  # noqa: N815 - the names that the server looks for

    def log_message(self, *_) -> None:
        pass


def test_a_slurm_elsewhere_is_watched_and_never_changed(plane, ns, tmp_path):
    nodes = json.loads((RECORDED / "nodes.json").read_text())["body"]["nodes"]
    heard: list[tuple[str, str]] = []
    with (
        served(Elsewhere, heard=heard) as url,
        running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager,
    ):
        manager.wait_ready()
        apply(plane, ours("Cluster", ns, "far", {"server": url, "token": {"secretRef": "login"}}))
        assert "there is none yet" in wait_reason(plane, ns, "cluster", "far", "SecretNotFound")

        apply(plane, secret(ns, "login", SLURM_JWT="first"))
        wait_reason(plane, ns, "cluster", "far", "Working")
        assert get(plane, ns, "cluster", "far")["status"]["nodes"]["total"] == len(nodes)
        apply(plane, secret(ns, "login", SLURM_JWT="second"))
        until(lambda: heard[-1:] == [("GET", "second")], what="the new token in use")

        assert {method for method, _ in heard} == {"GET"}
        assert parts(plane, ns) == set()
        plane.kubectl("delete", "cluster", "far", "-n", ns, "--timeout=30s")
    assert "first" not in manager.log.read_text()
