"""SlurmClusters and their NodeSets on a real API server: what they become, and what starts when."""

import json
from collections.abc import Iterator

import pytest
import yaml
from click.testing import CliRunner, Result
from kinds_rig import (
    apply,
    condition,
    get,
    merge,
    ns,
    operator,
    owner_of,
    refusals,
    serving_kinds,
    wait_for,
    writes_by,
)
from monitors_crd import POD_MONITORS

from slurm_operator.api import registry
from slurm_operator.cli.kubectl import kubectl_slurm
from testing.control_plane import Plane
from testing.golden import golden_manifests
from testing.managers import running_manager, until
from testing.slurmclusters import OURS, manifest, with_our_images

__all__ = ["ns"]

FIRST, SECOND = registry.GROUPS
BOTH = (f"--api={FIRST}", f"--api={SECOND}")
GOLDEN = {
    f"{kind}/{name}": manifests
    for kind in ("slurmcluster", "nodeset")
    for name, manifests in golden_manifests(f"nebius/{kind}").items()
}
CLUSTERS = "slurmclusters.slurm.nebius.ai"
NODESETS = "nodesets.slurm.nebius.ai"
WORKERS = "nodesets.slinky.slurm.net"
LOGINS = "loginsets.slinky.slurm.net"
JOB = "smallest-populate-jail"
PARTS = {
    ("Controller", "smallest"),
    ("RestApi", "smallest-operator-rest"),
    ("LoginSet", "smallest-login"),
    ("NodeSet", "cpu"),
}
# What tools and people look for, by name, as far as it is made before a slurmctld has tried its files.
CHILDREN = (
    ("service", "smallest-controller-svc"),
    ("service", "smallest-nodeset-svc"),
    ("service", "smallest-nodeset-cpu-svc"),
    ("service", "smallest-operator-rest"),
    ("service", "smallest-login-svc"),
    ("configmap", "smallest-ssh-configs"),
    ("configmap", "smallest-supervisord"),
    ("configmap", "smallest-nodeset-cpu-security-limits"),
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server of their own: with two kinds of the name, `kubectl get nodesets` is ambiguous."""
    with serving_kinds(tmp_path_factory.mktemp("both"), kinds=registry.ALL) as plane:
        apply(plane, POD_MONITORS)
        name = POD_MONITORS["metadata"]["name"]
        plane.kubectl("wait", "--for=condition=Established", "crd", name, "--timeout=60s")
        yield plane


@pytest.mark.parametrize("name", GOLDEN)
def test_the_api_server_takes_every_golden_manifest(plane, ns, name):
    assert refusals(plane, ns, GOLDEN[name]) == []


def placed(ns: str, body: dict) -> dict:
    return body | {"metadata": {**body["metadata"], "namespace": ns}}


def cluster(ns: str, **changes) -> dict:
    login = {"spec__slurmNodes__login__size": 2}
    return placed(ns, with_our_images(manifest("SlurmCluster", "smallest", **login, **changes)))


def nodeset(ns: str) -> dict:
    return placed(ns, manifest("NodeSet", "cpu", spec__clusterName="smallest", spec__replicas=2))


def parts(plane: Plane, ns: str) -> set[tuple[str, str]]:
    kinds = ",".join(f"{one.plural}.{FIRST}" for one in registry.DEFAULT)
    found = json.loads(plane.kubectl("get", kinds, "-n", ns, "-o", "json"))["items"]
    return {(thing["kind"], thing["metadata"]["name"]) for thing in found}


def replicas(plane: Plane, ns: str) -> tuple[int, int]:
    """Of login pods and workers, as they are wanted."""
    logins, workers = get(plane, ns, LOGINS, "smallest-login"), get(plane, ns, WORKERS, "cpu")
    return (logins or {"spec": {}})["spec"].get("replicas", -1), (workers or {"spec": {}})["spec"].get(
        "replicas", -1
    )


def succeed(plane: Plane, ns: str) -> None:
    """No kubelet runs here, so we say what the Job's controller would."""
    done = {"lastTransitionTime": "2026-01-01T00:00:00Z", "status": "True"}
    moments = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z"}
    types = [{"type": "SuccessCriteriaMet", **done}, {"type": "Complete", **done}]
    status = {"succeeded": 1, **moments, "conditions": types}
    merge(plane, ns, "job", JOB, {"status": status}, "--subresource=status")


def test_a_slurmcluster_becomes_parts_that_start_when_its_root_is_whole(plane, ns, tmp_path):
    apply(plane, nodeset(ns), cluster(ns))
    kubeconfig = operator(plane, f"op-{ns}")
    with running_manager(kubeconfig, tmp_path / "log", "--namespaces", ns, *BOTH) as manager:
        manager.wait_ready()
        until(lambda: parts(plane, ns) == PARTS, what="exactly these parts")
        for secret in ("smallest-munge", "smallest-rest-jwt-key", "smallest-sshd-keys"):
            wait_for(plane, ns, "secret", secret)
        assert owner_of(get(plane, ns, "controllers.slinky.slurm.net", "smallest")) == (
            "SlurmCluster",
            "smallest",
        )
        assert owner_of(get(plane, ns, WORKERS, "cpu")) == ("NodeSet", "cpu")
        for kind, name in CHILDREN:
            labels = wait_for(plane, ns, kind, name)["metadata"]["labels"]
            assert labels["app.kubernetes.io/name"] == "slurmcluster", (kind, name)
            assert labels["app.kubernetes.io/instance"] == "smallest", (kind, name)
        wait_for(plane, ns, "job", JOB)
        assert replicas(plane, ns) == (0, 0), "nothing starts on an empty root"
        until(
            lambda: condition(plane, ns, NODESETS, "cpu")[1] == "WaitingForRoot", what="the NodeSet says why"
        )

        succeed(plane, ns)
        until(lambda: replicas(plane, ns) == (2, 2), what="login pods and workers are wanted")
        told = condition(plane, ns, CLUSTERS, "smallest", "RootPopulated")
        assert told[:2] == ("True", "Populated")

        merge(plane, ns, CLUSTERS, "smallest", {"spec": {"maintenance": "downscale"}})
        until(lambda: replicas(plane, ns) == (0, 0), what="maintenance takes them down")
        until(
            lambda: get(plane, ns, CLUSTERS, "smallest")["status"]["phase"] == "Not available",
            what="the phase tells",
        )
        selector = get(plane, ns, NODESETS, "cpu")["status"]["labelSelector"]
        assert "slurm.nebius.ai/nodeset=cpu" in selector


def test_kubectl_slurm_shows_and_explains_it_as_one_cluster(plane, ns, tmp_path):
    apply(plane, nodeset(ns), cluster(ns))
    kubeconfig = operator(plane, f"op-{ns}")
    with running_manager(kubeconfig, tmp_path / "log", "--namespaces", ns, *BOTH) as manager:
        manager.wait_ready()
        until(
            lambda: condition(plane, ns, NODESETS, "cpu")[1] == "WaitingForRoot", what="the NodeSet says why"
        )
        until(
            lambda: condition(plane, ns, CLUSTERS, "smallest")[1] == "Populating", what="so does the cluster"
        )

    reader = str(plane.kubeconfig_for("viewer", "system:masters"))

    def asked(*words: str) -> Result:
        return CliRunner().invoke(kubectl_slurm, [*words, "-n", ns, "--kubeconfig", reader])

    [shown] = json.loads(asked("status", "-o", "json").stdout)
    assert (shown["kind"], shown["name"]) == ("SlurmCluster", "smallest")
    assert (
        asked("status", "slurmcluster/smallest", "-o", "name").stdout
        == "slurmcluster.slurm.nebius.ai/smallest\n"
    )
    for what in ("slurmcluster/smallest", "nodesets.slurm.nebius.ai/cpu", "nodeset/cpu"):
        told = asked("explain", what)
        assert told.exit_code == 0, told.output
        assert "shared root" in " ".join(told.stdout.split())


def test_a_new_cluster_is_planned_to_its_first_workers_and_not_made(plane, ns):
    reader = str(plane.kubeconfig_for(f"planner-{ns}", "system:masters"))
    image = {"repository": OURS.format(daemon="slurmd").rpartition(":")[0], "tag": "26.05"}
    bodies = (
        with_our_images(manifest("SlurmCluster", "smallest", spec__slurmNodes__login__size=1)),
        manifest("NodeSet", "cpu", spec__clusterName="smallest", spec__replicas=2, spec__slurmd__image=image),
    )
    for body in bodies:
        body["metadata"]["namespace"] = ns
    words = ["plan", "-f", "-", "-o", "json", "-n", ns, "--kubeconfig", reader]
    told = CliRunner().invoke(kubectl_slurm, words, input=yaml.safe_dump_all(bodies))

    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    made = {f"{one['kind']} {one['name']}" for one in found["created"]}
    assert {"Controller smallest", "Job smallest-populate-jail", "Pod cpu-0", "Pod cpu-1"} <= made
    assert found["stuck"] == found["refused"] == []
    assert get(plane, ns, CLUSTERS, "smallest") is None
    assert not [one for one in writes_by(plane, f"planner-{ns}") if "dryRun=All" not in one]


def test_deleted_it_takes_its_parts_along_and_keeps_keys(plane, ns, tmp_path):
    apply(plane, cluster(ns))
    kubeconfig = operator(plane, f"op-{ns}")
    with running_manager(kubeconfig, tmp_path / "log", "--namespaces", ns, *BOTH) as manager:
        manager.wait_ready()
        until(lambda: ("Controller", "smallest") in parts(plane, ns), what="its parts")
        wait_for(plane, ns, "secret", "smallest-munge")
        plane.kubectl("delete", CLUSTERS, "smallest", "-n", ns, "--wait=false")
        until(lambda: get(plane, ns, CLUSTERS, "smallest") is None, what="it is gone")
        assert parts(plane, ns) == set()
        assert get(plane, ns, "secret", "smallest-munge") is not None


def exporter(enabled: bool = True) -> dict:
    container = {"image": OURS.format(daemon="operator")}
    return {"enabled": enabled, "k8sNodeFilterName": "all", "exporterContainer": container}


def test_an_exporter_and_its_podmonitor_follow_the_switch(plane, ns, tmp_path):
    apply(plane, cluster(ns, spec__slurmNodes__exporter=exporter()))
    kubeconfig = operator(plane, f"op-{ns}")
    with running_manager(kubeconfig, tmp_path / "log", "--namespaces", ns, *BOTH) as manager:
        manager.wait_ready()
        for kind, name in (("deployment", "smallest-slurm-exporter"), ("podmonitor", "smallest")):
            assert owner_of(wait_for(plane, ns, kind, name)) == ("SlurmCluster", "smallest")
        rules = get(plane, ns, "podmonitor", "smallest")["spec"]["podMetricsEndpoints"]
        merge(plane, ns, "podmonitor", "smallest", {"spec": {"podMetricsEndpoints": []}})
        until(
            lambda: get(plane, ns, "podmonitor", "smallest")["spec"]["podMetricsEndpoints"] == rules,
            what="an edit to be undone",
        )

    with running_manager(
        operator(plane, f"again-{ns}"), tmp_path / "again", "--namespaces", ns, *BOTH
    ) as manager:
        manager.wait_ready()
        merge(
            plane, ns, CLUSTERS, "smallest", {"spec": {"slurmNodes": {"exporter": exporter(enabled=False)}}}
        )
        for kind, name in (("deployment", "smallest-slurm-exporter"), ("podmonitor", "smallest")):
            until(lambda: get(plane, ns, kind, name) is None, what=f"{kind} {name} to be deleted")  # noqa: B023
    wrote = [
        line for line in writes_by(plane, f"again-{ns}") if "slurm-exporter" in line or "podmonitors" in line
    ]
    assert {line.split()[0] for line in wrote} == {"delete"}, wrote
