"""The charts by which users of Soperator move over, installed with helm: a cluster, its workers, its checks, and a job."""

import json
import os
from dataclasses import replace

import pytest
from helm_rig import CHARTS, Helm
from operator_rig import until

from slurm_local import image, shared_root_cluster, stop
from slurm_local.errors import LocalError
from slurm_local.progress import PlainProgress, Quiet
from slurm_local.shared_root_cluster import CLUSTER, NAMESPACE
from slurm_local.start import up

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

HOME = "soperator-system"
NEVER = {"imagePullPolicy": "Never"}
LIGHT = {"munge": {"resources": None}, "nodeExporter": {"enabled": False}}
# Checks that would judge this machine, or change it: both workers see all of its memory and disks.
OFF = ("boot_disk_full.sh", "drop_page_cache.sh", "idle_mem_used.drain.py", "idle_mem_used.undrain.py")

OPERATOR = {"certManager": {"enabled": False}, "controllerManager": {"manager": NEVER}}
SLURM = {
    **NEVER,
    "clusterName": CLUSTER,
    "customSlurmConfig": "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n",
    "customCgroupConfig": "CgroupPlugin=disabled\n",
    "volumeSources": [
        {"name": "jail", "createPVC": True, "size": "4Gi", "persistentVolumeClaim": {"claimName": "jail-pvc"}}
    ],
    "slurmNodes": {
        "controller": {
            **LIGHT,
            "slurmctld": {"resources": None},
            "volumes": {
                "spool": {"volumeClaimTemplateSpec": {"resources": {"requests": {"storage": "1Gi"}}}}
            },
        },
        "login": {**LIGHT, "size": 1, "sshd": {"resources": None}, "sshdServiceType": "NodePort"},
        "exporter": {"enabled": False},
    },
    "sConfigController": {"container": {"resources": None}},
    "slurmScripts": {"builtIn": {name: {"enabled": False} for name in OFF}},
}
PULLED = {"repository": "docker.io/local/slurmd", "tag": "26.05", "pullPolicy": "Never"}
WORKERS = {
    "clusterName": CLUSTER,
    "nodesets": [
        {
            "name": "worker",
            "replicas": 2,
            "slurmd": {
                "image": PULLED,
                "resources": {"cpu": "500m", "memory": "1Gi"},
                "volumes": {"sharedMemorySize": "64Mi"},
            },
            "munge": {"image": PULLED, "resources": {"cpu": "10m", "memory": "64Mi"}},
        }
    ],
}
CHECKS = {
    **NEVER,
    "slurmClusterRefName": CLUSTER,
    "jobContainer": {"env": [{"name": "SETTLE_SECONDS", "value": "1"}]},
    "waitForChecks": {"timeoutSeconds": 240},
}


@pytest.fixture(scope="module")
def helm(wanted, paths):
    archives = (*wanted.archives, image.populate_archive(paths, PlainProgress()))
    name = f"e2e-charts-{os.getpid()}"
    cluster, _ = up(replace(wanted, name=name, archives=archives), paths, Quiet())
    cluster.load_image(image.operator_archive(paths, Quiet()))
    yield Helm(cluster)
    stop.down(name, paths, Quiet())


def install(helm: Helm, chart: str, namespace: str, values: dict, *flags: str) -> None:
    path = str(CHARTS / "soperator" / chart)
    given = {"localImages": True, **values}
    helm("install", chart, path, "-n", namespace, "--create-namespace", *flags, values=given)


def test_the_charts_run_a_job_and_the_checks_pass(helm):
    install(helm, "soperator-crds", HOME, {})
    install(helm, "soperator", HOME, OPERATOR, "--wait", "--timeout", "180s")
    install(helm, "soperatorchecks", HOME, {"checks": {"manager": NEVER}}, "--wait", "--timeout", "180s")
    install(helm, "slurm-cluster", NAMESPACE, SLURM)
    install(helm, "nodesets", NAMESPACE, WORKERS)
    shared_root_cluster.wait_available(helm.cluster)
    until(lambda: idle(helm) == {"worker-0", "worker-1"}, 180, lambda: told(helm))

    job = ("srun", "--nodes=2", "--chdir=/", "sh", "-c", "hostname; ls /opt/slurm_scripts/checks.json")
    out = shared_root_cluster.login(helm.cluster, *job)
    assert sorted(out.split()) == [*["/opt/slurm_scripts/checks.json"] * 2, "worker-0", "worker-1"]

    # The hook of the release waits for every check that runs after its creation.
    install(helm, "soperator-activechecks", NAMESPACE, CHECKS, "--timeout", "300s")
    assert results(helm) == {
        "create-user-soperatorchecks": "Complete", "create-user-nebius": "Complete", "wait-for-topology": "Complete",
        "wait-for-soperatorchecks-srun-ready": "Complete", "gpu-checks": "Skipped", "ensure-healthy-nodes": "Complete",
        "nccl-profiles-cleaner": "", "retrigger-checks": "",
    }  # fmt: skip
    accounts = shared_root_cluster.login(helm.cluster, "getent", "passwd", "soperatorchecks", "nebius")
    assert ":/opt/soperator-home/soperatorchecks:" in accounts


def test_profiles_without_files_are_removed_after_three_hours(helm):
    profiles = "/opt/soperator-outputs/shared/nccl_profiles"
    make = f"mkdir -p {profiles}/7/0 {profiles}/8/0 {profiles}/9/0; touch {profiles}/8/0/kept; touch -d '4 hours ago' {profiles}/7/0 {profiles}/7 {profiles}/8/0/kept {profiles}/8/0 {profiles}/8"
    shared_root_cluster.login(helm.cluster, "sh", "-c", make)
    run(helm, "nccl-profiles-cleaner")

    assert shared_root_cluster.login(helm.cluster, "ls", profiles).split() == ["8", "9"]


def test_checks_can_be_run_again_all_at_once(helm):
    run(helm, "retrigger-checks")

    started = {one["metadata"]["name"] for one in helm.get("jobs", "-n", NAMESPACE)["items"]}
    again = {name.rpartition("-manual-")[0] for name in started if "-manual-" in name}
    assert f"{CLUSTER}-create-user-nebius" in again
    assert len(again) == 6


def test_a_node_with_a_reason_is_not_healthy(helm):
    drain = ("scontrol", "update", "nodename=worker-1", "state=drain", "reason=seen")
    shared_root_cluster.login(helm.cluster, *drain)
    check = f"{CLUSTER}-ensure-healthy-nodes"
    helm.cluster.kubectl("create", "job", "-n", NAMESPACE, f"--from=cronjob/{check}", "once-more")
    until(lambda: results(helm)["ensure-healthy-nodes"] == "Failed", 120, lambda: told(helm))


def run(helm: Helm, check: str) -> None:
    """Once, until it has passed."""
    job = f"{check}-now"
    helm.cluster.kubectl("create", "job", "-n", NAMESPACE, f"--from=cronjob/{CLUSTER}-{check}", job)
    helm.cluster.kubectl("wait", "-n", NAMESPACE, f"job/{job}", "--for=condition=Complete", "--timeout=90s")


def results(helm: Helm) -> dict[str, str]:
    """How the last run of each check ended."""
    found = {}
    for one in helm.get("activechecks.slurm.nebius.ai", "-n", NAMESPACE)["items"]:
        status = one.get("status", {})
        is_slurm = one["spec"]["checkType"] == "slurmJob"
        last = (
            status.get("slurmJobsStatus", {}).get("lastRunStatus", "")
            if is_slurm
            else status.get("k8sJobsStatus", {}).get("lastJobStatus", "")
        )
        found[one["metadata"]["name"].removeprefix(f"{CLUSTER}-")] = last
    return found


def idle(helm: Helm) -> set[str]:
    try:
        lines = shared_root_cluster.login(
            helm.cluster, "sinfo", "-hN", "-p", "main", "-t", "idle", "-o", "%N"
        )
    except LocalError:
        return set()
    return set(lines.split())


def told(helm: Helm) -> str:
    """What SlurmCluster, NodeSet and checks say; for messages of tests."""
    kinds = ",".join(f"{plural}.slurm.nebius.ai" for plural in ("slurmclusters", "nodesets", "activechecks"))
    found = helm.get(kinds, "-n", NAMESPACE)["items"]
    said = [(one["metadata"]["name"], one.get("status", {}).get("conditions")) for one in found]
    return json.dumps(said) + helm.cluster.kubectl("get", "pods", "-n", NAMESPACE)
