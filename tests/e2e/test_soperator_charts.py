"""The charts by which users of Soperator move over, installed with helm: a cluster, its workers, its checks, and a job."""

import json
import os
import time
from dataclasses import replace

import pytest
from helm_rig import CHARTS, Helm
from operator_rig import until

from slurm_local import image, shared_root_cluster, stop
from slurm_local.errors import LocalError
from slurm_local.kubernetes import volumes
from slurm_local.progress import PlainProgress, Quiet
from slurm_local.shared_root_cluster import CLUSTER, NAMESPACE
from slurm_local.start import up
from slurm_operator.api.nebius import names
from slurm_operator.api.nebius import node_conditions as conditions

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
    "volumeSources": [{"name": "jail", "persistentVolumeClaim": {"claimName": "jail-pvc"}}],
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
STORAGE = {
    "volume": {
        "jail": {"storageClassName": volumes.CLASS, "size": "4Gi"},
        "controllerSpool": {"enabled": False},
    }
}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {names.NODESET: "worker"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}
# Nothing is rebooted on this machine: the command that would is replaced.
NODES = {
    "rebooter": {
        "image": {"pullPolicy": "Never"},
        "env": [{"name": "REBOOTER_REBOOT_COMMAND", "value": "/bin/false"}],
    }
}
PULLED = {"repository": "docker.io/local/slurmd", "tag": "26.05", "pullPolicy": "Never"}
WORKERS = {
    "clusterName": CLUSTER,
    "nodesets": [
        {
            "name": "worker",
            "replicas": 2,
            "affinity": APART,
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
    install(helm, "slurm-cluster-storage", NAMESPACE, STORAGE)
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


def test_what_depends_on_a_failed_check_is_skipped_and_the_brake_holds_its_drains(helm):
    """Both workers fail the second check: one of two may be drained, so neither is until a person says so."""
    apply_checks(
        helm,
        chain("chain-a", "exit 0"),
        chain("chain-b", "exit 3", "chain-a", "failureReactions"),
        chain("chain-c", "exit 0", "chain-b"),
    )
    until(lambda: results(helm).get("chain-c") == "Skipped", 240, lambda: told(helm))
    found = results(helm)
    assert (found["chain-a"], found["chain-b"]) == ("Complete", "Failed")
    assert check(helm, "chain-c")["status"]["skippedBy"] == ["chain-b"]
    braked = condition(helm, "chain-b", "Braked")
    assert braked["status"] == "True"
    assert idle(helm) == {"worker-0", "worker-1"}

    run_ = check(helm, "chain-b")["status"]["slurmJobsStatus"]["lastRunJob"]
    answer = ("annotate", "activechecks.slurm.nebius.ai", "chain-b", f"{names.BRAKE_RELEASE}={run_}")
    helm.cluster.kubectl(*answer, "-n", NAMESPACE)
    until(lambda: idle(helm) == set(), 60, lambda: told(helm))
    reasons = shared_root_cluster.login(helm.cluster, "sinfo", "--noheader", "--Node", "--format=%E")
    assert all(line.startswith("[node_problem] chain-b: job ") for line in reasons.splitlines())
    assert condition(helm, "chain-b", "Braked")["status"] == "False"

    kinds = "activechecks.slurm.nebius.ai"
    helm.cluster.kubectl("delete", kinds, "chain-a", "chain-b", "chain-c", "-n", NAMESPACE)
    resume = ("scontrol", "update", "nodename=worker-[0-1]", "state=resume")
    shared_root_cluster.login(helm.cluster, *resume)
    until(lambda: idle(helm) == {"worker-0", "worker-1"}, 60, lambda: told(helm))


def test_maintenance_empties_a_kubernetes_node_when_its_job_has_ended_and_gives_it_back(helm):
    """The checks' process, the rebooter of the chart and slurmctld, each by what the others say."""
    install(helm, "nodeconfigurator", HOME, NODES)
    daemons = ("rollout", "status", "daemonset/nodeconfigurator-ds", "-n", HOME, "--timeout=120s")
    until(lambda: helm.get("daemonsets", "-n", HOME)["items"], 60)
    helm.cluster.kubectl(*daemons)
    there = {
        one["metadata"]["name"]: one["spec"].get("nodeName")
        for one in helm.get("pods", "-n", NAMESPACE)["items"]
    }
    worker = next(
        name for name in ("worker-0", "worker-1") if there[name] != there[f"{CLUSTER}-controller-0"]
    )
    node, other = there[worker], "worker-1" if worker == "worker-0" else "worker-0"
    submit = (
        "sbatch",
        "--parsable",
        f"--nodelist={worker}",
        "--chdir=/",
        "--output=/dev/null",
        "--wrap=sleep 900",
    )
    job = shared_root_cluster.login(helm.cluster, *submit).strip()
    until(lambda: state(helm, job) == "RUNNING", 60, lambda: told(helm))

    says(helm, node, "True")
    until(lambda: idle(helm) == {other} and worker in draining(helm), 120, lambda: told_of(helm, node))
    assert state(helm, job) == "RUNNING"
    assert conditions.DRAIN not in told_of(helm, node)
    shared_root_cluster.login(helm.cluster, "scancel", job)
    emptied = f'"{conditions.DRAIN}": "{conditions.DRAINED}"'
    until(lambda: emptied in told_of(helm, node), 300, lambda: told_of(helm, node))
    spec = helm.get(f"node/{node}")["spec"]
    assert spec["unschedulable"] is True
    assert conditions.DRAIN_TAINT in {one["key"] for one in spec["taints"]}

    says(helm, node, "False")
    until(lambda: "unschedulable" not in helm.get(f"node/{node}")["spec"], 120, lambda: told_of(helm, node))
    assert not helm.get(f"node/{node}")["spec"].get("taints")
    until(lambda: idle(helm) == {"worker-0", "worker-1"}, 240, lambda: told(helm) + told_of(helm, node))
    assert told_of(helm, node) == "{}"


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


def chain(name: str, script: str, after: str = "", reaction: str = "") -> dict:
    """A check that runs once on each worker, after another one."""
    drained = {"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "name": name,
            "runAfterCreation": True,
            "suspend": True,
            "dependsOn": [after] if after else [],
            **({reaction: drained} if reaction else {}),
            "slurmJobSpec": {"eachWorkerJobs": True, "sbatchScript": f"#!/bin/bash\n{script}\n"},
        },
    }


def apply_checks(helm: Helm, *wanted: dict) -> None:
    """With the containers of a check that the chart has made."""
    made = check(helm, f"{CLUSTER}-ensure-healthy-nodes")
    spec = {key: value for key, value in made["spec"].items() if key != "schedule"}
    bodies = []
    for one in wanted:
        jobs = {**spec["slurmJobSpec"], **one["spec"]["slurmJobSpec"]}
        jobs.pop("sbatchScriptRefName", None)
        body = {key: made[key] for key in ("apiVersion", "kind")} | one
        bodies.append(body | {"spec": {**spec, **one["spec"], "slurmJobSpec": jobs}})
    helm.cluster.apply(bodies)


def check(helm: Helm, name: str) -> dict:
    return helm.get(f"activechecks.slurm.nebius.ai/{name}", "-n", NAMESPACE)


def condition(helm: Helm, name: str, type_: str) -> dict:
    found = check(helm, name).get("status", {}).get("conditions", ())
    return next((one for one in found if one["type"] == type_), {})


def says(helm: Helm, node: str, status: str) -> None:
    """The provider calls for maintenance, or takes that back."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    call = {
        "type": conditions.MAINTENANCE_SCHEDULED,
        "status": status,
        "reason": "Said",
        "lastTransitionTime": at,
    }
    patch = json.dumps({"status": {"conditions": [call]}})
    helm.cluster.kubectl("patch", "node", node, "--subresource=status", "--type=strategic", "-p", patch)


def told_of(helm: Helm, node: str) -> str:
    """Conditions of a Kubernetes node that are True, with their reasons."""
    found = helm.get(f"node/{node}")["status"]["conditions"]
    return json.dumps(
        {one["type"]: one["reason"] for one in found if one["status"] == "True" and one["type"] != "Ready"}
    )


def state(helm: Helm, job: str) -> str:
    return shared_root_cluster.login(
        helm.cluster, "squeue", "--noheader", f"--jobs={job}", "--format=%T"
    ).strip()


def draining(helm: Helm) -> set[str]:
    lines = shared_root_cluster.login(helm.cluster, "sinfo", "-hN", "-p", "main", "-t", "drain", "-o", "%N")
    return set(lines.split())


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
