"""`kubectl slurm plan`, `explain` and `record` against a real API server: its own words, and not one write."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from kinds_rig import apply, get, ns, operator, ours, secret, wait_for, writes_by

from slurm_operator.api.shared.images import PATTERN_VARIABLE
from slurm_operator.cli.kubectl import kubectl_slurm
from testing.managers import running_manager

__all__ = ["ns"]

SPEC = {"nodeSets": [{"name": "cpu", "replicas": 2}]}
BOOKS = {"storageConfig": {"host": "db", "passwordKeyRef": {"name": "db", "key": "p"}}}
RBAC = "rbac.authorization.k8s.io"


class Person:
    """Somebody with a kubeconfig, who types commands."""

    def __init__(self, plane, ns: str, *rules: dict) -> None:
        self.plane, self.ns, self.user = plane, ns, f"person-{ns}"
        self.kubeconfig = plane.kubeconfig_for(self.user, *([] if rules else ["system:masters"]))
        if rules:
            apply(plane, *self.allowed(rules))

    def allowed(self, rules: tuple[dict, ...]) -> Iterator[dict]:
        """What gives this person these rights, everywhere."""
        what = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": self.user}}
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": self.user}
        person = {"apiGroup": RBAC, "kind": "User", "name": self.user}
        yield {**what, "kind": "ClusterRole", "rules": list(rules)}
        yield {**what, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [person]}

    def types(self, command: str, *arguments: str, stdin: str = "") -> tuple[int, str]:
        words = [command, "--kubeconfig", str(self.kubeconfig), "-n", self.ns, *arguments]
        done = CliRunner().invoke(kubectl_slurm, words, input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.output
        return done.exit_code, done.output

    def plan(self, *manifests: dict, flags: tuple[str, ...] = ()) -> tuple[int, str]:
        return self.types("plan", "-f", "-", *flags, stdin=yaml.safe_dump_all(manifests))

    def takes_and_replays(self, file: Path) -> Result:
        """What a replay says of what the operator would decide now."""
        where = ["--kubeconfig", str(self.kubeconfig), "-n", self.ns]
        taken = CliRunner().invoke(kubectl_slurm, ["record", "take", str(file), *where])
        assert taken.exit_code == 0, taken.output
        return CliRunner().invoke(kubectl_slurm, ["record", "replay", str(file)])

    @property
    def writes(self) -> list[str]:
        """What this person really changed; asking what would be is no change."""
        return [
            one
            for one in writes_by(self.plane, self.user)
            if "dryRun=All" not in one and "reviews" not in one
        ]


@pytest.fixture
def person(plane, ns) -> Person:
    return Person(plane, ns)


def named(effects: list[dict]) -> set[str]:
    return {f"{effect['kind']} {effect['name']}" for effect in effects}


def test_a_new_cluster_is_planned_whole_and_not_made(plane, ns, person):
    code, told = person.plan(ours("Cluster", ns, "demo", SPEC), flags=("-o", "json"))

    assert code == 0, told
    found = json.loads(told)
    assert {"Cluster demo", "Controller demo", "RestApi demo", "NodeSet demo-cpu"} <= named(found["created"])
    assert {"Pod demo-controller-0", "Pod demo-cpu-0", "Pod demo-cpu-1"} <= named(found["created"])
    assert found["changed"] == found["deleted"] == found["restarted"] == []
    assert get(plane, ns, "cluster", "demo") is None
    assert person.writes == []


def test_a_file_that_the_server_refuses_is_refused_in_its_words(plane, ns, person):
    code, told = person.plan(ours("NodeSet", ns, "cpu", {"controllerRef": {"name": "slurm"}, "replicas": -1}))

    assert code == 2
    assert "spec.replicas" in told
    assert "greater than or equal to 0" in told


def test_a_field_that_cannot_change_is_refused(plane, ns, person):
    apply(plane, ours("Cluster", ns, "demo", {**SPEC, "clusterName": "one"}))
    code, told = person.plan(ours("Cluster", ns, "demo", {**SPEC, "clusterName": "two"}))

    assert code == 2
    assert "spec.clusterName" in told
    assert get(plane, ns, "cluster", "demo")["spec"]["clusterName"] == "one"


def test_an_unknown_field_is_refused_as_kubectl_would(plane, ns, person):
    code, told = person.plan(ours("Cluster", ns, "demo", {**SPEC, "nodeset": []}))

    assert code == 2
    assert told == f"Error: Cluster {ns}/demo: unknown field spec.nodeset\n"


def test_a_change_is_told_field_by_field(plane, ns, person):
    apply(plane, ours("Cluster", ns, "demo", {**SPEC, "extraConf": "KillWait=30\n"}))
    code, told = person.plan(ours("Cluster", ns, "demo", {"nodeSets": [{"name": "cpu", "replicas": 3}]}))

    assert code == 0, told
    assert "spec.nodeSets[cpu].replicas: 2 → 3" in told
    assert "KillWait=30" in told  # It left the file, so `kubectl apply` takes it away.
    assert told.rstrip().endswith("Nothing was done.")
    assert get(plane, ns, "cluster", "demo")["spec"]["nodeSets"][0]["replicas"] == 2


def test_who_may_not_look_is_told_which_right_is_missing(plane, ns):
    apply(plane, ours("Accounting", ns, "books", BOOKS))
    apply(plane, secret(ns, "db", p="x"))
    ours_only = {"apiGroups": ["slinky.slurm.net"], "resources": ["*"], "verbs": ["get", "list"]}
    code, told = Person(plane, ns, ours_only).types("explain", "accounting/books")

    assert code == 0
    assert "has not been looked at by the operator yet" in told
    assert f"You may not get secrets in namespace {ns}." in told
    assert "You may not list pods. Not shown: pods of daemons, and why one does not start." in told


def test_a_missing_secret_is_explained_and_well_when_it_is_there(plane, ns, person):
    apply(plane, ours("Accounting", ns, "books", BOOKS))
    code, told = person.types("explain", "accounting", "books")

    assert code == 1
    assert "there is none yet" in told
    apply(plane, secret(ns, "db", p="x"))
    assert "Secret 'db'" not in person.types("explain", "accounting/books")[1]
    assert person.writes == []


def test_what_is_not_there_is_not_explained(plane, ns, person):
    code, told = person.types("explain", "cluster/nobody")

    assert code == 1
    assert "There is no Cluster 'nobody'" in told


def test_what_the_operator_would_decide_now_can_be_recorded_and_replayed(plane, ns, person, tmp_path):
    apply(plane, ours("Cluster", ns, "demo", SPEC))
    replayed = person.takes_and_replays(tmp_path / "now.jsonl")

    assert replayed.exit_code == 0, replayed.output
    assert "1 of 1 plans are the same" in replayed.output


def test_where_a_manifest_names_no_image_the_one_of_the_operator_counts(plane, ns, person, tmp_path):
    file = tmp_path / "now.jsonl"
    apply(plane, ours("Controller", ns, "demo", {}), operator_pod(ns, "registry.example.org/{daemon}:theirs"))
    try:
        replayed = person.takes_and_replays(file)
    finally:
        plane.kubectl("delete", "pod", "operator", "-n", ns, "--wait=false")

    assert "registry.example.org/{daemon}:theirs" in file.read_text()
    assert replayed.exit_code == 0, replayed.output


def operator_pod(ns: str, images: str) -> dict:
    """As the pod of an operator that was told these images."""
    env = [{"name": PATTERN_VARIABLE, "value": images}]
    container = {"name": "manager", "image": "registry.example.org/operator:1", "env": env}
    metadata = {"name": "operator", "namespace": ns, "labels": {"app.kubernetes.io/name": "slurm-operator"}}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.full
def test_a_managers_recording_replays_to_the_identical_plans(plane, ns, tmp_path):
    apply(plane, ours("Cluster", ns, "demo", SPEC))
    flags = ("--namespaces", ns, "--record", str(tmp_path / "flights"))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", *flags) as manager:
        manager.wait_ready()
        wait_for(plane, ns, "pod", "demo-cpu-1")
        wait_for(plane, ns, "service", "demo-controller")
        manager.signal(signal.SIGTERM)
        assert manager.wait() == 0
    listed = CliRunner().invoke(kubectl_slurm, ["record", "list", str(tmp_path / "flights"), "-o", "json"])
    replayed = CliRunner().invoke(kubectl_slurm, ["record", "replay", str(tmp_path / "flights")])

    actions = [action for one in json.loads(listed.output) for action in one["actions"]]
    assert "Create: created worker demo-cpu-1" in actions
    assert replayed.exit_code == 0, replayed.output
