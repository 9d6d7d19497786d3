"""Who may make privileged pods and tokens of administrators, asked of a real API server."""

import json

import pytest
from kinds_rig import apply, get, ns, ours, serving_kinds

from slurm_local.errors import LocalError
from slurm_local.kubernetes.api_call import Caller, Refused
from slurm_local.kubernetes.kubeconfig import kubectl
from slurm_operator.api import registry
from slurm_operator.manifests.builders.protection import service_account
from slurm_operator.manifests.builders.user_policies import NAME, roles, user_policies
from testing.managers import until

__all__ = ["ns"]

OPERATOR = service_account("slurm", "slurm-operator")
KINDS = registry.ALL.on(registry.GROUPS)

CONTROLLER = {"controllerRef": {"name": "demo"}}
UNPRIVILEGED = {
    "privileged": False,
    "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "KILL", "SETGID", "SETUID"]},
}
PLAIN = {**CONTROLLER, "slurmd": {"securityContext": UNPRIVILEGED}}
ADMIN = {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}
KEY = {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}}


def beside(**pod) -> dict:
    """Workers without privileges of their own, and more in their pod."""
    return {**PLAIN, "template": {"spec": pod}}


# What is asked for, and whether everybody may.
NODE_SETS = {
    "privileged unless it says otherwise": (CONTROLLER, False),
    "unprivileged": (PLAIN, True),
    "unprivileged by half: our capabilities stay": ({**CONTROLLER, "slurmd": {"securityContext": {"privileged": False}}}, False),
    "a mighty capability": ({**CONTROLLER, "slurmd": {"securityContext": {"privileged": False, "capabilities": {"add": ["SYS_PTRACE"]}}}}, False),
    "a container beside": (beside(containers=[{"name": "a", "image": "i"}]), True),
    "a privileged container beside": (beside(containers=[{"name": "a", "image": "i", "securityContext": {"privileged": True}}]), False),
    "a privileged one before": (beside(initContainers=[{"name": "a", "image": "i", "securityContext": {"privileged": True}}]), False),
    "the same for slurmd by another way": (beside(containers=[{"name": "slurmd", "securityContext": {"privileged": True}}]), False),
    "the machine's network": (beside(hostNetwork=True), False),
    "the machine's processes": (beside(hostPID=True), False),
    "a file of the machine": (beside(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), False),
    "a claim": (beside(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]), True),
    "a mighty sidecar": ({**PLAIN, "logfile": ADMIN}, False),
}  # fmt: skip
OTHERS = {
    "plain Controller": ("Controller", {"slurmKeyRef": {"name": "k", "key": "k"}}, True),
    "Controller with a privileged slurmctld": ("Controller", {"slurmctld": {"securityContext": {"privileged": True}}}, False),
    "Controller with a mighty munge": ("Controller", {"auth": {"type": "munge", "munge": ADMIN}}, False),
    "LoginSet on the machine's network": ("LoginSet", {**CONTROLLER, "template": {"spec": {"hostNetwork": True}}}, False),
    "RestApi with a mighty exporter": ("RestApi", {**CONTROLLER, "exporter": {"template": {"spec": {"containers": [{"name": "slurm-exporter", **ADMIN}]}}}}, False),
    "Accounting with a mighty MariaDB": ("Accounting", {"managed": {"mariadb": ADMIN}}, False),
    "Cluster in which the operator chooses": ("Cluster", {"nodeSets": [{"name": "cpu"}]}, False),
    "Cluster without workers": ("Cluster", {}, True),
    "Cluster without a list of workers": ("Cluster", {"nodeSets": None}, True),
    "Cluster with plain processes": ("Cluster", {"isolation": "process", "nodeSets": [{"name": "cpu"}]}, True),
    "Cluster with one privileged slurmd": ("Cluster", {"isolation": "process", "nodeSets": [{"name": "cpu"}, {"name": "gpu", "slurmd": {"securityContext": {"privileged": True}}}]}, False),
    "Cluster with a login on a file of the machine": ("Cluster", {"logins": [{"name": "l", "template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}}]}, False),
    "Token of a user": ("Token", {**KEY, "username": "ada"}, True),
    "Token of root": ("Token", {**KEY, "username": "root"}, False),
    "Token of slurm": ("Token", {**KEY, "username": "slurm"}, False),
}  # fmt: skip


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with serving_kinds(tmp_path_factory.mktemp("users"), kinds=KINDS) as plane:
        everything = {
            "apiGroups": [*registry.GROUPS],
            "resources": ["*"],
            "verbs": ["create", "get", "update", "patch"],
        }
        apply(
            plane, *roles(), *user_policies(OPERATOR, KINDS, exempt=["robot"]),
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "tenants"}, "rules": [everything]},
            bound("tenants", "tenants", *(subject(user) for user in ("ada", "admin", "robot", "head", OPERATOR))),
            bound("privileged", f"{NAME}-privileged", subject("admin")),
            bound("administrators", f"{NAME}-administrators", subject("head")),
        )  # fmt: skip
        plane.kubectl("create", "namespace", "probe")
        # A new policy is at work when the API server has compiled it, which it does not announce.
        for kind, spec in (("NodeSet", CONTROLLER), ("Token", {**KEY, "username": "root"}), *[(kind, spec) for kind, spec, may in OTHERS.values() if not may]):  # fmt: skip
            until(lambda kind=kind, spec=spec: refusal(plane, "ada", "probe", kind, spec), what=f"the policy of {kind} at work")  # fmt: skip
        yield plane


def subject(user: str) -> dict:
    return {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}


def bound(name: str, role: str, *subjects: dict) -> dict:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": list(subjects),
    }


def as_user(plane, user: str) -> Caller:
    return Caller(plane.url, plane.ca, plane.certificates.client(user, ()))


def refusal(plane, user: str, ns: str, kind: str, spec: dict) -> str:
    """What the API server has against it when this user makes it; nothing is stored."""
    made = ours(kind, ns, "demo", spec)
    path = f"/apis/{made['apiVersion']}/namespaces/{ns}/{kind.lower()}s?dryRun=All"
    try:
        as_user(plane, user).call("POST", path, made)
    except Refused as refused:
        return str(refused)
    return ""


def patch_refusal(plane, user: str, ns: str, plural: str, patch: dict) -> str:
    path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{ns}/{plural}/demo"
    try:
        as_user(plane, user).call("PATCH", path, patch, kind="application/merge-patch+json")
    except Refused as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(("spec", "may_all"), NODE_SETS.values(), ids=NODE_SETS)
def test_who_may_make_such_workers(plane, ns, spec, may_all):
    said = refusal(plane, "ada", ns, "NodeSet", spec)

    assert (said == "") is may_all, said
    assert may_all or "asks for pods that can become root on their machine" in said
    assert [refusal(plane, user, ns, "NodeSet", spec) for user in ("admin", "robot")] == ["", ""]


@pytest.mark.parametrize(("kind", "spec", "may_all"), OTHERS.values(), ids=OTHERS)
def test_who_may_make_other_things(plane, ns, kind, spec, may_all):
    said = refusal(plane, "ada", ns, kind, spec)

    assert (said == "") is may_all, said
    who = "head" if kind == "Token" else "admin"
    assert [refusal(plane, user, ns, kind, spec) for user in (who, OPERATOR)] == ["", ""]


def test_the_refusal_says_what_to_do(plane, ns):
    made = json.dumps(ours("Token", ns, "demo", {**KEY, "username": "root"}))
    with pytest.raises(LocalError) as refusal:
        kubectl(plane.kubectl_program, plane.kubeconfig_for("ada"), "create", "-f", "-", stdin=made)

    assert "Token demo is for root, an administrator of Slurm" in str(refusal.value)
    assert f"--clusterrole=slurm-operator-administrators --user=USER -n {ns}" in str(refusal.value)


def test_what_is_privileged_already_can_be_edited_but_not_made_more_so(plane, ns):
    apply(plane, ours("NodeSet", ns, "demo", {**CONTROLLER, "replicas": 1}))

    assert patch_refusal(plane, "ada", ns, "nodesets", {"spec": {"replicas": 2}}) == ""
    assert patch_refusal(plane, "ada", ns, "nodesets", {"metadata": {"labels": {"team": "a"}}}) == ""
    hidden = {"spec": {"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}}}
    assert "can become root" in patch_refusal(plane, "ada", ns, "nodesets", hidden)
    assert patch_refusal(plane, "admin", ns, "nodesets", hidden) == ""
    assert get(plane, ns, "nodesets.slinky.slurm.net", "demo")["spec"]["replicas"] == 2


def test_workers_of_a_privileged_cluster_can_be_scaled_and_no_more_added(plane, ns):
    apply(plane, ours("Cluster", ns, "demo", {"nodeSets": [{"name": "cpu", "replicas": 1}]}))

    scaled = {"spec": {"nodeSets": [{"name": "cpu", "replicas": 3}]}}
    assert patch_refusal(plane, "ada", ns, "clusters", scaled) == ""
    more = {"spec": {"nodeSets": [{"name": "cpu", "replicas": 3}, {"name": "gpu"}]}}
    assert "can become root" in patch_refusal(plane, "ada", ns, "clusters", more)
    assert patch_refusal(plane, "ada", ns, "clusters", {"spec": {"isolation": "process"}}) == ""


def test_what_is_made_by_the_second_api_is_always_privileged(plane, ns):
    kind = next(one.kind for one in KINDS if one.kind.kind == "NodeConfigurator")
    metadata = {"name": "demo", "namespace": ns}
    made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {}}
    with pytest.raises(Refused) as refused:
        as_user(plane, "ada").call("POST", f"{kind.path(ns)}?dryRun=All", made)

    assert "can become root" in str(refused.value)
