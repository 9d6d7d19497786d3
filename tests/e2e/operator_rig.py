"""The operator in a pod of the cluster under test, and Slurm clusters made by it."""

import json
import re
import time
from pathlib import Path

from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_local.image.images import slurm_image
from slurm_local.slurm_cluster import install as install

# Unprivileged workers: the machine under test need not give anything away.
PROCESS_CONF = "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nReturnToService=2\nSlurmdTimeout=30\nMinJobAge=10\n"

LEDGER_MOUNT = {"name": "ledgers", "mountPath": "/ledgers"}


class Slurm:
    """One Slurm cluster in a namespace, by its component kinds."""

    keeps_books = False  # Whether there is a slurmdbd that can be asked.

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self.ledgers.mkdir(parents=True, exist_ok=True)
        self.ledgers.chmod(0o777)  # Jobs run as anybody.

    @property
    def ledgers(self) -> Path:
        """A directory that all machines share, where jobs write down their lives: see job_ledger.py."""
        return self.cluster.directory / "ledgers" / self.namespace

    @property
    def ledger_volume(self) -> dict:
        return {"name": "ledgers", "hostPath": {"path": str(self.ledgers), "type": "Directory"}}

    def kubectl(self, *arguments: str) -> str:
        """kubectl in the namespace of this cluster."""
        return self.cluster.kubectl("-n", self.namespace, *arguments)

    def apply(self, *manifests: dict) -> None:
        self.cluster.apply(list(manifests))

    def files(self) -> dict:
        """Referenced config files: without cgroups, so that workers need no privileges."""
        return {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files", "namespace": self.namespace},
            "data": {"cgroup.conf": "CgroupPlugin=disabled\n"},
        }  # fmt: skip

    def kind(self, kind: str, name: str, spec: dict) -> dict:
        return {
            "apiVersion": "slinky.slurm.net/v1beta1", "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace}, "spec": spec,
        }  # fmt: skip

    def controller(self, **spec) -> dict:
        return self.kind("Controller", "slurm", {
            "slurmctld": {"image": slurm_image("slurmctld"), "imagePullPolicy": "Never", "volumeMounts": [LEDGER_MOUNT]},
            "logfile": {"image": slurm_image("slurmctld"), "imagePullPolicy": "Never"},
            "extraConf": PROCESS_CONF + "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED\n",
            "configFileRefs": [{"name": "files"}],
            "template": {"spec": {"volumes": [self.ledger_volume]}},
            "persistence": {"enabled": True, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            **spec,
        })  # fmt: skip

    def restapi(self) -> dict:
        return self.kind("RestApi", "slurm", {
            "controllerRef": {"name": "slurm"},
            "slurmrestd": {"image": slurm_image("slurmrestd"), "imagePullPolicy": "Never"},
        })  # fmt: skip

    def accounting(self) -> dict:
        slurmdbd = {"image": slurm_image("slurmdbd"), "imagePullPolicy": "Never"}
        storage = {"size": "1Gi"}
        return self.kind("Accounting", "books", {"slurmdbd": slurmdbd, "managed": {"storage": storage}})

    def nodeset(self, name: str = "cpu", replicas: int = 2, labels: dict | None = None, **spec) -> dict:
        unprivileged = {
            "privileged": False,
            "capabilities": {"add": ["SETUID", "SETGID", "CHOWN", "KILL"], "drop": ["ALL"]},
        }
        return self.kind("NodeSet", name, {
            "controllerRef": {"name": "slurm"}, "replicas": replicas, "oversubscribeNode": True,
            "slurmd": {"image": slurm_image("slurmd"), "imagePullPolicy": "Never", "securityContext": unprivileged,
                       "volumeMounts": [LEDGER_MOUNT]},
            "logfile": {"image": slurm_image("slurmd"), "imagePullPolicy": "Never"},
            "template": {"metadata": {"labels": labels or {}}, "spec": {"volumes": [self.ledger_volume]}},
            **spec,
        })  # fmt: skip

    def run(self, *command: str, timeout_s: float = 60) -> str:
        """A command where Slurm's clients work: beside slurmctld."""
        return self.cluster.kubectl(
            "exec", "-n", self.namespace, "slurm-controller-0", "-c", "slurmctld", "--", "timeout", "30", *command,
            timeout_s=timeout_s,
        )  # fmt: skip

    def submit(self, script: str, *options: str) -> int:
        out = self.run("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}")
        return int(re.match(r"\d+", out.strip())[0])

    def states(self) -> dict[str, str]:
        return node_states(self.run)

    def answers(self) -> bool:
        """Whether slurmctld is there."""
        try:
            return "UP" in self.run("scontrol", "ping")
        except LocalError:
            return False

    def drained_by_us(self) -> set[str]:
        """Nodes that the operator drained, whatever they are doing."""
        out = self.run("sinfo", "--noheader", "--Node", "--Format=NodeList:60,Reason:120")
        return {line.split()[0] for line in out.splitlines() if "slurm-operator:" in line}

    def job_state(self, job: int) -> str:
        return job_state(self.run, job)

    def pods(self) -> dict[str, str]:
        """Worker pods by name, with their uid."""
        out = self.cluster.kubectl(
            "get", "pods", "-n", self.namespace, "-l", "app.kubernetes.io/name=slurmd", "-o", "json"
        )
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in json.loads(out)["items"]}

    def wait_idle(self, count: int, seconds: float = 120) -> None:
        until(lambda: sum(1 for state in self.states().values() if state == "idle") >= count, seconds,
              lambda: f"{count} idle workers: {self.states()} {self.pods()}")  # fmt: skip


def volume(name: str, directory: Path, namespace: str, *, size: str, mode: str) -> list[dict]:
    """A directory of this machine as a volume, and the claim that has it."""
    amount, modes = {"storage": size}, [mode]
    made = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": amount, "accessModes": modes, "storageClassName": "",
                 "hostPath": {"path": str(directory), "type": "Directory"}},
    }  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": modes, "storageClassName": "", "volumeName": name,
                 "resources": {"requests": amount}},
    }  # fmt: skip
    return [made, claim]


def node_states(run) -> dict[str, str]:
    """Slurm's nodes and their states; none while slurmctld, beside which `run` runs commands, is on its way."""
    try:
        out = run("sinfo", "--noheader", "--Node", "--Format=NodeList:60,StateLong:40")
    except LocalError:
        return {}
    return dict(line.split() for line in out.splitlines() if len(line.split()) == 2)


def job_state(run, job: int) -> str:
    """As Slurm has it, whose commands `run` runs; it forgets ended jobs after a while."""
    try:
        out = run("scontrol", "show", "job", "--oneliner", str(job))
    except LocalError as error:
        if "Invalid job id" in str(error):
            return "FORGOTTEN"
        raise
    return re.search(r"JobState=(\S+)", out)[1]


def until(condition, seconds: float = 120, what=lambda: "it") -> None:
    """Looks less often where a look takes long: who waits leaves the machine to those it waits for."""
    end = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if condition():
            return
        looked = time.monotonic()
        assert looked < end, f"waited {seconds:.0f} s for {what()}"
        time.sleep(min(max(0.5, 2 * (looked - began)), 2))
