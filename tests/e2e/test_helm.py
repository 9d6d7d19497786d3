"""The charts as a user has them: install all three, run a job, upgrade, stop the operator, uninstall."""

import json
import re

import pytest
import yaml
from helm_rig import CHARTS, HOME, Helm
from operator_rig import until

from slurm_local import image
from slurm_local.progress import Quiet

pytestmark = pytest.mark.timeout(900)

ON_PAPER = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["paper"]}]}]
}


@pytest.fixture(scope="module")
def helm(fragile_cluster, paths) -> Helm:
    """A cluster with the definitions and the operator, in a namespace that enforces the restricted level."""
    fragile_cluster.load_image(image.operator_archive(paths, Quiet()))
    helm = Helm(fragile_cluster)
    helm("install", "slurm-operator-crds", str(CHARTS / "slurm-operator-crds"))
    fragile_cluster.kubectl("create", "namespace", HOME)
    fragile_cluster.kubectl("label", "namespace", HOME, "pod-security.kubernetes.io/enforce=restricted")
    helm.install_operator()
    return helm


def test_all_three_charts_run_a_job_and_nothing_that_happens_to_the_operator_touches_it(helm, paths, capsys):
    helm.install_slurm()
    workers, heads = helm.pods("slurm", "slurmd"), helm.pods("slurm", "slurmctld")
    job = helm.job(seconds=40)
    until(lambda: helm.job_state(job) == "RUNNING", 60, lambda: helm.job_state(job))

    # With the helper for bindings, so that even what is asked about every pod's placement is away below.
    helm.install_operator(propagatedNodeConditions=["GpuBad"], webhook={"podsBinding": True})
    assert (helm.pods("slurm", "slurmd"), helm.pods("slurm", "slurmctld")) == (workers, heads)
    with capsys.disabled():
        print(f"\n{described(helm, paths)}")

    stop_operator(helm)
    unrelated_pods_come_and_go(helm)
    scale = ("scale", "-n", "slurm", "nodesets.slinky.slurm.net/slurm-worker-cpu", "--replicas=3")
    assert "scaled" in helm.cluster.kubectl(*scale)
    edit = ("patch", "-n", "slurm", "nodesets.slinky.slurm.net/slurm-worker-cpu", "--type=merge", "-p")
    assert "patched" in helm.cluster.kubectl(*edit, '{"spec": {"replicas": 2}}')

    helm("uninstall", "slurm-operator", "-n", HOME, "--wait")
    assert (helm.pods("slurm", "slurmd"), helm.pods("slurm", "slurmctld")) == (workers, heads)
    until(lambda: helm.job_state(job) == "COMPLETED", 120, lambda: helm.job_state(job))
    assert len(set(helm.slurm("srun", "--nodes=2", "hostname").split())) == 2
    assert len(helm.get("crd")["items"]) == 7


@pytest.mark.full
def test_installed_again_it_takes_everything_over_as_it_is_and_a_cluster_goes_entirely(helm):
    before = helm.pods("slurm")
    helm.install_operator()
    ready = ("wait", "-n", "slurm", "controllers.slinky.slurm.net/slurm", "--for=condition=Ready")
    helm.cluster.kubectl(*ready, "--timeout=120s")
    assert helm.pods("slurm") == before
    assert helm("test", "slurm-operator", "-n", HOME).count("Succeeded") == 2

    helm("uninstall", "slurm", "-n", "slurm")
    until(lambda: helm.pods("slurm") == {}, 240, lambda: str(helm.pods("slurm")))
    kinds = "controllers,restapis,nodesets,accountings,loginsets"
    until(
        lambda: helm.get(kinds, "-n", "slurm")["items"] == [],
        120,
        lambda: helm.cluster.kubectl("get", kinds, "-n", "slurm"),
    )
    keys = {secret["metadata"]["name"] for secret in helm.get("secrets", "-n", "slurm")["items"]}
    assert {"slurm-auth-slurm", "slurm-auth-jwt"} <= keys  # State and tokens were made with them.


def stop_operator(helm: Helm) -> None:
    helm.cluster.kubectl("scale", "deployment", "--all", "--replicas=0", "-n", HOME)
    until(lambda: helm.pods(HOME) == {}, 60, lambda: str(helm.pods(HOME)))


def unrelated_pods_come_and_go(helm: Helm, count: int = 100) -> None:
    """On a machine that exists on paper only: they are made, placed by the scheduler, and deleted."""
    room = {"pods": "200", "cpu": "100", "memory": "100Gi"}
    helm.cluster.apply([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "paper"}}])
    status = json.dumps({"status": {"capacity": room, "allocatable": room}})
    helm.cluster.kubectl("patch", "node", "paper", "--subresource=status", "--type=merge", "-p", status)
    spec = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ON_PAPER}},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "a", "image": "none"}],
    }
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"unrelated-{index}", "namespace": "default"},
            "spec": spec,
        }
        for index in range(count)
    ]
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    made = helm.cluster.kubectl("create", "-f", "-", stdin=items)
    placed = ("get", "pods", "-n", "default", "--field-selector=spec.nodeName=paper", "-o", "name")
    until(lambda: helm.cluster.kubectl(*placed).count("unrelated-") == count, 120, lambda: "all placed")
    gone = helm.cluster.kubectl("delete", "-f", "-", "--grace-period=0", "--force", stdin=items)
    helm.cluster.kubectl("delete", "node", "paper")
    assert (made.count(" created"), gone.count(" force deleted")) == (count, count)


def described(helm: Helm, paths) -> str:
    """How large and how quick the operator is."""
    lines = [f"operator image: {image.operator_archive(paths, Quiet()).stat().st_size / 2**20:.0f} MiB"]
    for name in ("slurm-operator", "slurm-operator-webhook"):
        [pod] = [one for one in running(helm, name) if "deletionTimestamp" not in one["metadata"]]
        [started] = [each["state"]["running"]["startedAt"] for each in pod["status"]["containerStatuses"]]
        [ready] = [
            each["lastTransitionTime"] for each in pod["status"]["conditions"] if each["type"] == "Ready"
        ]
        status = helm.cluster.kubectl(
            "exec", "-n", HOME, pod["metadata"]["name"], "--", "sh", "-c", "cat /proc/[0-9]*/status"
        )
        used = max(int(size) for size in re.findall(r"VmRSS:\s+(\d+) kB", status))
        lines.append(f"{name}: started {started}, ready {ready}, {used / 1024:.0f} MiB of memory")
    return "\n".join(lines)


def running(helm: Helm, name: str) -> list[dict]:
    where = ("-n", HOME, "-l", f"app.kubernetes.io/name={name}", "--field-selector=status.phase=Running")
    found: list[dict] = helm.get("pods", *where)["items"]
    return found


@pytest.mark.full
def test_keys_that_an_earlier_release_made_are_kept_and_not_made_anew(helm):
    """Helm deletes what a new version of a chart no longer has; a cluster without its keys is lost."""
    helm.cluster.kubectl("create", "namespace", "before")
    for name, key in (("auth-slurm", "slurm.key"), ("auth-jwt", "jwt.key")):
        where = ("-n", "before", f"slurm-{name}")
        helm.cluster.kubectl("create", "secret", "generic", *where, f"--from-literal={key}=old")
        helm.cluster.kubectl("label", "secret", *where, "app.kubernetes.io/managed-by=Helm")
        helm.cluster.kubectl(
            "annotate", "secret", *where, "meta.helm.sh/release-name=slurm", "meta.helm.sh/release-namespace=before"
        )  # fmt: skip
    flags = ("--dry-run=server", "-n", "before")
    told = helm("install", "slurm", str(CHARTS / "slurm"), *flags, values={"asciiArt": False})
    manifests = told.partition("MANIFEST:")[2].partition("NOTES:")[0]
    made = {
        (thing["kind"], thing["metadata"]["name"]): thing for thing in yaml.safe_load_all(manifests) if thing
    }

    kept = made["Secret", "slurm-auth-slurm"]
    assert kept["data"] == {"slurm.key": "b2xk"}
    assert kept["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert made["Controller", "slurm"]["spec"]["slurmKeyRef"] == {
        "name": "slurm-auth-slurm",
        "key": "slurm.key",
    }
