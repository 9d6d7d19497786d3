"""Rights that few manifests need, used; and what happens when some are missing."""

import pytest
from kinds_rig import apply, condition, config_map, get, merge, ns, operator, ours, plane, secret, wait_for
from monitors_crd import MONITORS

from slurm_operator.install import rights
from testing.managers import running_manager, until
from testing.rights import IN_NAMESPACES

__all__ = ["ns", "plane"]

STORAGE = {"host": "db.example.com", "username": "slurm", "passwordKeyRef": {"name": "db", "key": "password"}}


def test_rights_for_monitors_files_and_databases_that_move_away(plane, ns, tmp_path):
    apply(plane, MONITORS)
    plane.kubectl("wait", "--for=condition=Established", "crd", MONITORS["metadata"]["name"], "--timeout=60s")
    files = [
        f"files-{number}" for number in range(6)
    ]  # So many that the namespace is watched, and each read by name.
    metrics = {"enabled": True, "serviceMonitor": {"enabled": True}}
    apply(
        plane, *(config_map(ns, name, {f"{name}.conf": "x"}) for name in files), secret(ns, "db", password="x"),
        ours("Accounting", ns, "db", {"storageConfig": STORAGE}),
        ours("Controller", ns, "slurm", {"configFileRefs": [{"name": name} for name in files], "metrics": metrics}),
        ours("Cluster", ns, "demo", {"nodeSets": [{"name": "cpu", "replicas": 0}], "accounting": {"managed": {}}}),
    )  # fmt: skip
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        wait_for(plane, ns, "statefulset", "db-accounting")
        wait_for(plane, ns, "accounting", "demo")

        elsewhere = {
            "external": True,
            "externalConfig": {"host": "db.example.com", "port": 6819},
            "storageConfig": None,
        }
        merge(plane, ns, "accounting", "db", {"spec": elsewhere})
        merge(plane, ns, "clusters.slinky.slurm.net", "demo", {"spec": {"accounting": None}})
        until(lambda: get(plane, ns, "statefulset", "db-accounting") is None, what="the old slurmdbd to go")
        until(
            lambda: get(plane, ns, "accounting", "demo") is None, what="the Accounting of the Cluster to go"
        )

        wait_for(plane, ns, "servicemonitor", "slurm-controller")
        merge(plane, ns, "controllers.slinky.slurm.net", "slurm", {"spec": {"metrics": {"enabled": False}}})
        until(lambda: get(plane, ns, "servicemonitor", "slurm-controller") is None, what="the monitor to go")


# What the Slinky operator was allowed (`*` stands for the seven usual verbs), and nothing of what is new here.
ALL = "create,delete,get,list,patch,update,watch"
BEFORE = [
    (ALL, "configmaps,events,persistentvolumeclaims,pods,secrets,services"),
    ("get,list,watch", "nodes"),
    ("get,patch,update", "pods/status"),
    (ALL, "controllerrevisions.apps,deployments.apps,statefulsets.apps"),
    ("create,get,patch,update", "leases.coordination.k8s.io"),
    ("create,patch", "events.events.k8s.io"),
    (ALL, "poddisruptionbudgets.policy"),
    (ALL, ",".join(f"{kind}.slinky.slurm.net" for kind in ("controllers", "nodesets", "loginsets", "accountings", "restapis", "tokens"))),
    ("get,patch,update", ",".join(f"{kind}.slinky.slurm.net/status" for kind in ("controllers", "nodesets", "loginsets", "accountings", "restapis", "tokens"))),
]  # fmt: skip


def test_with_the_rights_of_the_operator_before_us_it_works_and_leaves_out_what_it_may_not_see(
    plane, ns, tmp_path
):
    user = f"before-{ns}"
    for number, (verbs, resources) in enumerate(BEFORE):
        name = f"{user}-{number}"
        plane.kubectl("create", "clusterrole", name, f"--verb={verbs}", f"--resource={resources}")
        plane.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--user={user}")
    apply(
        plane,
        ours("Controller", ns, "slurm", {}),
        ours("Cluster", ns, "demo", {"nodeSets": [{"name": "cpu"}]}),
    )
    with running_manager(plane.kubeconfig_for(user), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        wait_for(plane, ns, "service", "slurm-controller")
        assert condition(plane, ns, "clusters.slinky.slurm.net", "demo") == ("", "", "")
        until(
            lambda: "this kind is left out" in manager.log.read_text(), what="a line about what is left out"
        )
        assert manager.process.poll() is None


@pytest.mark.parametrize("missing", ["services", "statefulsets.apps"])
def test_a_missing_right_is_said_in_a_condition_and_ends_nothing(plane, ns, tmp_path, missing):
    """Everything may be seen, and one kind may not be written."""
    user = f"no-{missing.partition('.')[0]}-{ns}"
    see, write = [], []
    for verbs, resources in BEFORE:
        see.append(resources)
        write.append((verbs, ",".join(one for one in resources.split(",") if one != missing)))
    for number, (verbs, resources) in enumerate([("get,list,watch", ",".join(see)), *write]):
        if resources:
            plane.kubectl(
                "create", "clusterrole", f"{user}-{number}", f"--verb={verbs}", f"--resource={resources}"
            )
            plane.kubectl(
                "create",
                "clusterrolebinding",
                f"{user}-{number}",
                f"--clusterrole={user}-{number}",
                f"--user={user}",
            )
    apply(plane, ours("Accounting", ns, "db", {"storageConfig": STORAGE}), secret(ns, "db", password="x"))
    with running_manager(plane.kubeconfig_for(user), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(lambda: "forbidden" in str(condition(plane, ns, "accounting", "db", "Degraded")).lower(),
              what=f"a condition that says so: {condition(plane, ns, 'accounting', 'db', 'Degraded')}")  # fmt: skip
        assert manager.is_ready


def test_confined_to_a_namespace_roles_are_enough(plane, ns, tmp_path):
    """No ClusterRole at all, but for the definitions of kinds that belong to no namespace."""
    user = f"confined-{ns}"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "op", "namespace": ns},
        "rules": rights.rules((*IN_NAMESPACES, *rights.AT_HOME)),
    }  # fmt: skip
    apply(plane, role)
    plane.kubectl("create", "rolebinding", "op", "-n", ns, "--role=op", f"--user={user}")
    apply(plane, ours("Controller", ns, "slurm", {}))
    flags = ("--namespaces", ns, "--leader-elect", f"--leader-elect-namespace={ns}")
    with running_manager(plane.kubeconfig_for(user), tmp_path / "log", *flags) as manager:
        manager.wait_ready()
        wait_for(plane, ns, "service", "slurm-controller")
