"""Readers with few rights, as real ServiceAccounts: they are told what they may not see, and nobody else is blamed."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from kinds_rig import apply, ns, ours, serving_kinds

from slurm_operator.cli.kubectl import kubectl_slurm
from slurm_operator.install.chosen import Installation
from slurm_operator.install.objects import people
from testing.managers import until

__all__ = ["ns"]

RBAC = "rbac.authorization.k8s.io"
AUTHORIZATION = "authorization.k8s.io"
NOTHING_MUCH = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "ns"}}
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Working",
    "message": "All parts are ready, and Slurm answers.",
}
AVAILABLE = {
    "type": "Ready",
    "status": "True",
    "reason": "Available",
    "message": "2 of 2 workers are available",
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """With a controller-manager: it adds rules to Kubernetes' own roles."""
    with serving_kinds(tmp_path_factory.mktemp("kinds"), controller_manager=True) as plane:
        apply(plane, *people(Installation(image="x")))
        until(
            lambda: "clusters" in plane.kubectl("get", "clusterrole", "view", "-o", "yaml"),
            what="aggregation",
        )
        yield plane


@pytest.fixture
def demo(plane, ns) -> str:
    """A Cluster that its operator calls healthy, with what composes it."""
    parts = {
        "Cluster demo": ({"nodeSets": [{"name": "cpu", "replicas": 2}]}, READY, {"slurmVersion": "26.05.5", "nodes": {"total": 2, "idle": 2}, "jobs": {"running": 1}}),
        "Controller demo": ({}, READY, {}),
        "RestApi demo": ({"controllerRef": {"name": "demo"}}, READY, {}),
        "NodeSet demo-cpu": ({"controllerRef": {"name": "demo"}, "replicas": 2}, AVAILABLE, {"desired": 2, "replicas": 2, "readyReplicas": 2, "registeredReplicas": 2, "slurmIdle": 2}),
    }  # fmt: skip
    for name, (spec, condition, more) in parts.items():
        kind, name = name.split()
        apply(plane, ours(kind, ns, name, spec))
        conditions = [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        status = {"status": {"observedGeneration": 1, "conditions": conditions, **more}}
        plane.kubectl(
            "patch",
            kind.lower(),
            name,
            "-n",
            ns,
            "--subresource=status",
            "--type=merge",
            "-p",
            json.dumps(status),
        )
    return ns


def account(plane, ns: str, name: str, tmp_path: Path) -> Path:
    """A kubeconfig with a token of a new ServiceAccount."""
    apply(plane, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": ns}})
    path = f"/api/v1/namespaces/{ns}/serviceaccounts/{name}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = plane.caller.call("POST", path, asked)["status"]["token"]
    made = yaml.safe_load(plane.kubeconfig_for("somebody").read_text())
    made["users"] = [{"name": made["users"][0]["name"], "user": {"token": token}}]
    file = tmp_path / f"kubeconfig-{name}"
    file.write_text(yaml.safe_dump(made))
    return file


def bind(plane, ns: str, name: str, kind: str, role: str) -> None:
    apply(
        plane,
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"{name}-{role}", "namespace": ns},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": ns}],
        },
    )


def run(kubeconfig: Path, *arguments: str) -> Result:
    return CliRunner().invoke(kubectl_slurm, [*arguments, "--kubeconfig", str(kubeconfig)])


def test_with_the_view_role_a_healthy_cluster_is_shown_as_healthy(plane, demo, tmp_path):
    reader = account(plane, demo, "viewer", tmp_path)
    bind(plane, demo, "viewer", "ClusterRole", "view")

    shown = run(reader, "status", "-n", demo)

    assert f"Cluster {demo}/demo   Ready" in shown.output
    assert "The operator counts 2 nodes (2 idle), 1 running and 0 pending jobs." in shown.output
    assert "You may not ask Slurm itself" in shown.output
    assert "Not shown: names of Slurm nodes and jobs." in shown.output
    assert "The operator counts 2 nodes (2 idle), 1 running and 0 pending jobs." in shown.output
    assert shown.exit_code == 0


def test_jobs_name_the_right_that_is_missing_and_what_works_without_it(plane, demo, tmp_path):
    reader = account(plane, demo, "viewer", tmp_path)
    bind(plane, demo, "viewer", "ClusterRole", "view")

    told = run(reader, "jobs", "-n", demo)

    assert f"Slurm of {demo}/demo cannot be asked: you may not read Secret demo-auth-jwt" in told.output
    assert "--token-secret" in told.output
    assert told.exit_code == 1


@pytest.mark.parametrize("what", ["cluster/demo", "nodeset/demo-cpu", "controller/demo"])
def test_a_reader_without_the_signing_key_blames_nobody(plane, demo, tmp_path, what):
    reader = account(plane, demo, "viewer", tmp_path)
    bind(plane, demo, "viewer", "ClusterRole", "view")

    told = run(reader, "explain", what, "-n", demo)

    assert "is healthy" in told.output
    assert "You may not get secrets in namespace" in told.output
    for wrong in ("ServiceAccount", "SlurmUnreachable", "operator's rights"):
        assert wrong not in told.output
    assert told.exit_code == 0


EVERY_QUESTION = [
    ("status",),
    ("jobs",),
    ("explain", "cluster/demo"),
    ("doctor",),
    ("top", "--once"),
    ("drain", "cpu-0", "--reason", "x"),
    ("plan", "-f", "-"),
]


@pytest.mark.parametrize("words", EVERY_QUESTION, ids=" ".join)
def test_an_api_server_that_does_not_answer_is_not_one_without_clusters(tmp_path, words):
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "x"}}
    file = tmp_path / "kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "c"}
        )
    )

    told = CliRunner().invoke(
        kubectl_slurm, [*words, "--kubeconfig", str(file)], input=json.dumps(NOTHING_MUCH)
    )

    assert told.output.startswith(
        "Error: The API server cannot be asked: cannot connect to https://127.0.0.1:1"
    )
    assert told.exit_code != 0


def test_a_token_that_nobody_knows_is_said_to_be_that(plane, tmp_path):
    made = yaml.safe_load(plane.kubeconfig_for("somebody").read_text())
    made["users"] = [{"name": made["users"][0]["name"], "user": {"token": "of-yesterday"}}]
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(made))

    told = run(file, "jobs")

    assert told.output.startswith("Error: The API server does not know you (Unauthorized). Log in again")
    assert told.exit_code == 1


def test_with_rights_on_our_kinds_only_pods_are_not_said_to_be_missing(plane, demo, tmp_path):
    reader = account(plane, demo, "narrow", tmp_path)
    rule = {"apiGroups": ["slinky.slurm.net"], "resources": ["*"], "verbs": ["get", "list"]}
    meta = {"name": "narrow", "namespace": demo}
    apply(plane, {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": [rule]})
    bind(plane, demo, "narrow", "Role", "narrow")

    shown = run(reader, "status", "-n", demo)
    told = run(reader, "explain", "nodeset/demo-cpu", "-n", demo)
    pod = run(reader, "explain", "pod/demo-cpu-0", "-n", demo)
    job = run(reader, "explain", "job/1", "-n", demo)

    assert "slurmctld    Controller demo   ?" in shown.output
    assert "demo-cpu   2        2       2" in shown.output
    assert (shown.exit_code, told.exit_code) == (0, 0)
    assert "You may not list pods" in told.output
    assert "You may not list pods" in pod.output
    assert "There is no pod" not in pod.output
    assert "--token-secret" in job.output
    assert (pod.exit_code, job.exit_code) == (1, 1)


def test_who_may_see_nothing_is_not_told_that_there_is_nothing(plane, demo, tmp_path):
    stranger = account(plane, demo, "stranger", tmp_path)

    shown = run(stranger, "status", "-n", demo)
    told = run(stranger, "explain", "cluster/demo", "-n", demo)

    assert "You may not list clusters (slinky.slurm.net) and list controllers" in shown.output
    assert "There is no Slurm cluster" not in shown.output
    assert "You may not list clusters (slinky.slurm.net) in namespace" in told.output
    assert (shown.exit_code, told.exit_code) == (1, 1)


@pytest.mark.parametrize(("role", "may"), [("view", False), ("edit", True), ("admin", True)])
def test_who_may_edit_a_namespace_may_change_its_clusters(plane, demo, tmp_path, role, may):
    account(plane, demo, role, tmp_path)
    bind(plane, demo, role, "ClusterRole", role)

    def can(verb: str, resource: str, subresource: str = "") -> bool:
        attributes = {
            "verb": verb,
            "group": "slinky.slurm.net",
            "resource": resource,
            "subresource": subresource,
        }
        user = f"system:serviceaccount:{demo}:{role}"
        spec = {"user": user, "resourceAttributes": {**attributes, "namespace": demo}}
        review = {"apiVersion": f"{AUTHORIZATION}/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = plane.caller.call("POST", f"/apis/{AUTHORIZATION}/v1/subjectaccessreviews", review)
        return answer["status"]["allowed"]

    assert can("list", "nodesets")
    assert [can("create", "clusters"), can("patch", "nodesets", "scale")] == [may, may]
