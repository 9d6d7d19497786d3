"""`status`, `drain` and `logs` against a real API server, for those who may do much and those who may not."""

import json

from click.shell_completion import BashComplete
from click.testing import CliRunner, Result
from kinds_rig import apply, condition, ns, operator, ours, wait_for

from slurm_operator.cli.kubectl import kubectl_slurm
from testing.managers import running_manager, until

__all__ = ["ns"]

SPEC = {"nodeSets": [{"name": "cpu", "replicas": 1}]}


def run(plane, user: str, *arguments: str, groups: tuple[str, ...] = ()) -> Result:
    kubeconfig = plane.kubeconfig_for(user, *groups)
    return CliRunner().invoke(kubectl_slurm, [*arguments, "--kubeconfig", str(kubeconfig)])


def all_of(plane, ns: str) -> Result:
    return run(plane, "viewer", "status", "-n", ns, "-o", "json", groups=("system:masters",))


def test_a_cluster_is_shown_with_what_it_waits_for(plane, ns, tmp_path):
    files = {"configFileRefs": [{"name": "not-there"}]}
    apply(plane, ours("Cluster", ns, "demo", {**SPEC, "controller": files}))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        wait_for(plane, ns, "nodeset", "demo-cpu")
        until(lambda: condition(plane, ns, "nodeset", "demo-cpu")[0] != "", what="a word about the workers")
        until(lambda: json.loads(all_of(plane, ns).stdout)[0]["waiting"], what="something that waits")

    shown = all_of(plane, ns)

    [found] = json.loads(shown.stdout)
    assert (found["kind"], found["name"], found["namespace"]) == ("Cluster", "demo", ns)
    assert [one["daemon"] for one in found["daemons"]] == ["slurmctld", "slurmrestd"]
    assert [(one["name"], one["wanted"]) for one in found["node_sets"]] == [("demo-cpu", 1)]
    assert any("not-there" in one["message"] for one in found["waiting"] if "demo" in one["subject"])
    assert found["unreachable"], "no slurmrestd runs here"
    assert shown.exit_code == 1, "it is not ready"


def test_who_may_see_little_is_shown_what_the_objects_say_and_told_what_is_missing(plane, ns):
    apply(plane, ours("Cluster", ns, "demo", SPEC), *reader(ns, "ada", "clusters", "controllers"))

    shown = run(plane, "ada", "status", "-n", ns)
    drained = run(plane, "ada", "drain", "demo-cpu-0", "-n", ns)
    logs = run(plane, "ada", "logs", "-n", ns)

    assert f"Cluster {ns}/demo   Unknown" in shown.output
    assert "You may not list pods. Not shown: pods of daemons" in shown.output
    assert "has no RestApi" in drained.output
    assert "cannot list resource" in logs.output
    assert {shown.exit_code, drained.exit_code, logs.exit_code} == {1}


def test_a_drain_says_which_right_it_wants(plane, ns):
    kinds = ("clusters", "controllers", "restapis", "tokens", "pods")
    rest = ours("RestApi", ns, "demo", {"controllerRef": {"name": "demo"}})
    apply(plane, ours("Controller", ns, "demo", {}), rest, *reader(ns, "bob", *kinds))

    drained = run(plane, "bob", "drain", "demo-cpu-0", "-n", ns)

    assert drained.exit_code == 1
    assert f"the right `get secrets` for {ns}/demo-auth-jwt is missing" in drained.output


def test_names_of_clusters_are_proposed_and_nothing_where_nobody_may_look(plane, ns):
    apply(
        plane,
        ours("Cluster", ns, "demo", SPEC),
        ours("Controller", ns, "deep", {}),
        ours("Controller", ns, "other", {}),
    )

    assert proposed(plane, ns, "viewer", "system:masters") == ["deep", "demo"]
    assert proposed(plane, ns, "stranger") == []


def proposed(plane, ns: str, user: str, *groups: str) -> list[str]:
    kubeconfig = plane.kubeconfig_for(user, *groups)
    words = ["status", "-n", ns, "--kubeconfig", str(kubeconfig)]
    shell = BashComplete(kubectl_slurm, {}, "kubectl-slurm", "_KUBECTL_SLURM_COMPLETE")
    return [item.value for item in shell.get_completions(words, "de")]


def test_a_namespace_without_clusters_is_told_so(plane, ns):
    shown = run(plane, "viewer", "status", "-n", ns, groups=("system:masters",))

    assert shown.output == "Error: There is no Slurm cluster here. Look in every namespace with -A.\n"


def reader(ns: str, user: str, *resources: str) -> list[dict]:
    """A Role that lets this user look at these and nothing else."""
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    metadata = {"name": user, "namespace": ns}
    rule = {"apiGroups": ["", "slinky.slurm.net"], "resources": list(resources), "verbs": ["get", "list"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    return [
        {**rbac, "kind": "Role", "metadata": metadata, "rules": [rule]},
        {**rbac, "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]},
    ]
