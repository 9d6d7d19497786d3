"""What goes wrong in Kubernetes: machines, images, volumes, names, rights and rules."""

import json
from collections.abc import Iterator

import pytest
from operator_rig import until
from patient import PATIENCE_S, Patient

from slurm_local.errors import LocalError
from slurm_local.machine.network import NodeNetwork
from testing.power import start_node, stop_node

TWO = {"replicas": 2}


def bad_image(it: Patient) -> Iterator[str]:
    it.wants(odd={"slurmd": {"image": "nowhere.example/slurmd:typo"}})
    yield "cluster/demo"
    it.wants()


def no_node_fits(it: Patient) -> Iterator[str]:
    it.wants(odd={"slurmd": {"resources": {"requests": {"cpu": "900"}}}})
    yield "cluster/demo"
    it.wants()


def volume_pending(it: Patient) -> Iterator[str]:
    """Another Cluster asks for a StorageClass that there is not."""
    persistence = {"enabled": True, "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    it.make("Cluster", "other", {"isolation": "process", "controller": {"persistence": persistence}})
    yield "cluster/other"
    place = it.cluster.directory / "fast"
    place.mkdir(exist_ok=True)
    place.chmod(0o777)
    it.put("StorageClass", "fast", "storage.k8s.io/v1", provisioner="kubernetes.io/no-provisioner")
    it.put("PersistentVolume", "fast", spec={
        "storageClassName": "fast", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": str(place), "type": "Directory"},
    })  # fmt: skip
    it.wait_well("cluster/other")
    it.kubectl("delete", "cluster.slinky.slurm.net", "other", "--timeout=180s")


def dns_broken(it: Patient) -> Iterator[str]:
    """Nobody answers for names, when a worker starts."""
    it.cluster.parts.stop("coredns")
    it.wants(odd=TWO)
    yield "nodeset/demo-odd"
    it.cluster.parts.restart("coredns")
    it.wait_well("nodeset/demo-odd")
    it.wants()


def rbac_missing(it: Patient) -> Iterator[str]:
    """The operator may not make pods any more."""
    roles = json.loads(
        it.cluster.kubectl("get", "clusterroles", "-l", "app.kubernetes.io/name=slurm-operator", "-o", "json")
    )
    [role] = [one for one in roles["items"] if any(_makes_pods(rule) for rule in one["rules"])]
    poorer = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "create"]} if _makes_pods(rule) else rule for rule in role["rules"]]  # fmt: skip
    _set_rules(it, role, poorer)
    it.wants(odd=TWO)
    yield "nodeset/demo-odd"
    _set_rules(it, role, role["rules"])
    it.wait_well("nodeset/demo-odd")
    it.wants()


def _makes_pods(rule: dict) -> bool:
    return "pods" in rule.get("resources", ()) and "create" in rule["verbs"]


def _set_rules(it: Patient, role: dict, rules: list[dict]) -> None:
    patch = json.dumps([{"op": "replace", "path": "/rules", "value": rules}])
    it.cluster.kubectl("patch", "clusterrole", role["metadata"]["name"], "--type=json", "-p", patch)


def quota(it: Patient) -> Iterator[str]:
    it.put("ResourceQuota", "small", spec={"hard": {"pods": "1"}})
    it.wants(odd=TWO)
    yield "nodeset/demo-odd"
    it.kubectl("delete", "resourcequota", "small")
    it.wait_well("nodeset/demo-odd")
    it.wants()


def pod_security(it: Patient) -> Iterator[str]:
    it.cluster.kubectl("label", "namespace", it.namespace, "pod-security.kubernetes.io/enforce=restricted")
    it.wants(odd=TWO)
    yield "nodeset/demo-odd"
    it.cluster.kubectl("label", "namespace", it.namespace, "pod-security.kubernetes.io/enforce-")
    it.wait_well("nodeset/demo-odd")
    it.wants()


def eviction_blocked(it: Patient) -> Iterator[str]:
    """Somebody empties a machine on which a job runs."""
    job = it.submit("sleep 3600", "--nodelist=demo-odd-0", "--time=70")
    until(lambda: it.job_state(job) == "RUNNING", PATIENCE_S, lambda: it.job_state(job))
    machine = it.workers()["demo-odd-0"]
    only = "--pod-selector=app.kubernetes.io/instance=demo-odd"
    with pytest.raises(LocalError):
        it.cluster.kubectl("drain", machine, only, "--ignore-daemonsets", "--force", "--timeout=5s")
    yield "node/demo-odd-0"
    it.cluster.kubectl("uncordon", machine)
    it.run("scancel", str(job))
    it.wait_over(job)
    it.wait_well("node/demo-odd-0")


def node_lost(it: Patient) -> Iterator[str]:
    """The plug of a machine is pulled; of the one without slurmctld."""
    head = it.get("pod/demo-controller-0")["spec"]["nodeName"]
    number = next(one for one in (1, 2) if NodeNetwork(one).name != head)
    worker = next(name for name, machine in it.workers().items() if machine != head)
    stop_node(it.cluster, number)
    yield f"pod/{worker}"
    start_node(it.cluster, number)
    it.wait_well(f"pod/{worker}")


def name_clash(it: Patient) -> Iterator[str]:
    """A LoginSet of somebody else has the name that the Cluster wants for its own."""
    it.make("LoginSet", "demo-login", {"controllerRef": {"name": "demo"}, "replicas": 1})
    it.wants(logins=[{"name": "login"}])
    yield "cluster/demo"
    it.kubectl("delete", "loginset", "demo-login", "--timeout=120s")
    it.wait_well()
    it.wants()
