"""The three charts on the local cluster, with the images that this machine has made."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml
from operator_rig import PROCESS_CONF, until

from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_local.image import OPERATOR_IMAGE, slurm_image

CHARTS = Path(__file__).parents[2] / "charts"
HOME = "slurm-operator"

OPERATOR_VALUES: dict[str, Any] = {
    "imagePullPolicy": "Never",
    "priorityClassName": "system-cluster-critical",
    "slurmImages": slurm_image("{daemon}"),
    "global": {"image": {"repository": OPERATOR_IMAGE.rpartition(":")[0]}},
}
UNPRIVILEGED = {
    "privileged": False,
    "capabilities": {"add": ["SETUID", "SETGID", "CHOWN", "KILL"], "drop": ["ALL"]},
}
SLURM_VALUES: dict[str, Any] = {
    "imagePullPolicy": "Never",
    "defaultImages": slurm_image("{daemon}"),
    "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
    "controller": {
        "extraConf": PROCESS_CONF.replace("MinJobAge=10", "MinJobAge=600"),
        "logfile": {"image": slurm_image("slurmctld")},
        "persistence": {"resources": {"requests": {"storage": "1Gi"}}},
    },
    "nodesetDefaults": {
        "slurmd": {"securityContext": UNPRIVILEGED},
        "logfile": {"image": slurm_image("slurmd")},
        "oversubscribeNode": True,
    },
    "nodesets": {"cpu": {"replicas": 2}},
    "partitions": {"all": {"enabled": True}},
}


class Helm:
    """helm and kubectl as a user of one cluster has them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def __call__(self, *args: str, values: dict[str, Any] | None = None, timeout_s: float = 400) -> str:
        """What helm prints. Raises LocalError with what it complained about."""
        command = [str(self.cluster.helm_program), *args, *(["-f", "-"] if values is not None else [])]
        done = subprocess.run(
            command,
            input=yaml.safe_dump(values or {}),
            env={**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig)},
            capture_output=True, text=True, check=False, timeout=timeout_s,
        )  # fmt: skip
        if done.returncode != 0:
            raise LocalError(f"helm {' '.join(args)}: {done.stderr.strip()}\n{self._pods()}")
        return done.stdout

    def _pods(self) -> str:
        return self.cluster.kubectl("get", "pods,events", "-A", "-o", "wide")[-6000:]

    def install_operator(self, release: str = HOME, **values: Any) -> None:
        where = ("-n", HOME, "--wait", "--timeout", "300s")
        self(
            "upgrade",
            "--install",
            release,
            str(CHARTS / "slurm-operator"),
            *where,
            values=OPERATOR_VALUES | values,
        )

    def get(self, *what: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.cluster.kubectl("get", *what, "-o", "json"))
        return found

    def pods(self, namespace: str, app: str = "") -> dict[str, tuple[str, int]]:
        """Pods by name, with their uid and how often their containers were started again."""
        selector = ["-l", f"app.kubernetes.io/name={app}"] if app else []
        return {
            pod["metadata"]["name"]: (
                pod["metadata"]["uid"],
                sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ())),
            )
            for pod in self.get("pods", "-n", namespace, *selector)["items"]
        }

    def slurm(self, *command: str, namespace: str = "slurm") -> str:
        """A command where Slurm's clients work: beside slurmctld."""
        where = ("exec", "-n", namespace, "slurm-controller-0", "-c", "slurmctld", "--", "timeout", "30")
        return self.cluster.kubectl(*where, *command, timeout_s=60)

    def idle(self) -> int:
        try:
            return len(self.slurm("sinfo", "--noheader", "--Node", "--states=idle").splitlines())
        except (LocalError, subprocess.TimeoutExpired):
            return 0

    def install_slurm(self) -> None:
        """A Slurm cluster by its chart, until its workers are idle. Helm waits for what it made."""
        self.cluster.kubectl("create", "namespace", "slurm")
        wait = ("--wait", "--timeout", "300s")
        self("install", "slurm", str(CHARTS / "slurm"), "-n", "slurm", *wait, values=SLURM_VALUES)
        for what in ("controller/slurm", "restapi/slurm", "nodesets.slinky.slurm.net/slurm-worker-cpu"):
            assert self.is_ready(what), f"helm --wait came back before {what} was ready"
        until(lambda: self.idle() == 2, 300, self._pods)

    def is_ready(self, what: str) -> bool:
        """By its status, which is about the spec as it is."""
        found = self.get(what, "-n", "slurm")
        status = found.get("status", {})
        is_current = status.get("observedGeneration") == found["metadata"]["generation"]
        ready = [one["status"] for one in status.get("conditions", ()) if one["type"] == "Ready"]
        return is_current and ready == ["True"]

    def job(self, seconds: int) -> int:
        wrap = f"--wrap=srun sleep {seconds}"
        return int(self.slurm("sbatch", "--parsable", "--nodes=2", "--output=/dev/null", wrap).split(";")[0])

    def job_state(self, job: int) -> str:
        out = self.slurm("scontrol", "show", "job", "--oneliner", str(job))
        return out.partition("JobState=")[2].split()[0]
