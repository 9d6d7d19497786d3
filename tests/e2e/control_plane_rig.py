"""Control planes under test: a Slurm cluster of its own for a module, and pods of it that die."""

import contextlib
import json
import re
import subprocess
import uuid
from collections.abc import Iterator

from e2e_pods import make_namespace
from operator_rig import Slurm, until

from slurm_operator.local.cluster import Cluster
from slurm_operator.local.errors import LocalError


class ControlPlane(Slurm):
    """One Slurm cluster, looked at from its head."""

    def get(self, kind: str, name: str = "slurm") -> dict:
        return json.loads(self.cluster.kubectl("get", kind, name, "-n", self.namespace, "-o", "json"))

    def status(self, kind: str = "controller", name: str = "slurm") -> dict:
        return self.get(kind, name).get("status") or {}

    def condition(self, type_: str, kind: str = "controller", name: str = "slurm") -> dict:
        conditions = self.status(kind, name).get("conditions", ())
        return next((one for one in conditions if one["type"] == type_), {})

    def told(self) -> str:
        """What the Controller says about itself; for messages of tests."""
        said = {
            one["type"]: (one["status"], one.get("reason"), one.get("message", ""))
            for one in self.status().get("conditions", ())
        }
        return json.dumps({"conditions": said, "config": self.status().get("config")})

    def heads(self) -> dict[str, tuple[str, int]]:
        """slurmctld pods by name: their uid, and how often their slurmctld was started anew."""
        found = json.loads(
            self.cluster.kubectl(
                "get", "pods", "-n", self.namespace, "-l", "app.kubernetes.io/name=slurmctld", "-o", "json"
            )
        )["items"]
        return {pod["metadata"]["name"]: (pod["metadata"]["uid"], restarts(pod)) for pod in found}

    def worker_restarts(self) -> dict[str, tuple[str, int]]:
        found = json.loads(
            self.cluster.kubectl(
                "get", "pods", "-n", self.namespace, "-l", "app.kubernetes.io/name=slurmd", "-o", "json"
            )
        )["items"]
        return {pod["metadata"]["name"]: (pod["metadata"]["uid"], restarts(pod)) for pod in found}

    def answers(self, *command: str) -> str:
        """What a client prints; nothing while slurmctld is away."""
        try:
            return self.run(*command)
        except (LocalError, subprocess.TimeoutExpired):
            return ""

    def is_up(self) -> bool:
        return " UP" in self.answers("scontrol", "ping")

    def kill_head(self, pod: str = "slurm-controller-0") -> None:
        """slurmctld is gone at once, without a word, and another one comes in its place."""
        before = self.heads().get(pod)
        self.cluster.kubectl("delete", "pod", pod, "-n", self.namespace, "--grace-period=1", "--wait=false")
        until(
            lambda: self.heads().get(pod) not in (None, before), what=lambda: f"a new {pod}: {self.heads()}"
        )
        until(self.is_up, what=lambda: f"slurmctld to answer: {self.heads()} {self.told()}")

    def delete(self) -> None:
        for kind in ("nodeset", "loginset", "restapi", "controller", "accounting"):
            self.cluster.kubectl("delete", kind, "--all", "-n", self.namespace, "--wait=false")
        self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false")


@contextlib.contextmanager
def control_plane(cluster: Cluster, *, workers: int = 1, **controller: object) -> Iterator[ControlPlane]:
    """A Slurm cluster with a slurmrestd and idle workers in a namespace of its own."""
    name = f"head-{uuid.uuid4().hex[:6]}"
    make_namespace(cluster, name)
    made = ControlPlane(cluster, name)
    made.apply(made.files(), made.controller(**controller), made.restapi(), made.nodeset(replicas=workers))
    made.wait_idle(workers, 240)
    yield made
    made.delete()


def restarts(pod: dict) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(one["restartCount"] for one in statuses)


def setting(shown: str, key: str) -> str:
    """One value of `scontrol show config`."""
    found = re.search(rf"^{key}\s*=\s*(.*)$", shown, re.MULTILINE)
    return found[1].strip() if found else ""
