"""Control planes under test: a Slurm cluster of its own for a module, and pods of it that die."""

import contextlib
import json
import re
import subprocess
import uuid
from collections.abc import Callable, Iterator

from e2e_pods import make_namespace
from operator_rig import Slurm, until

from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_local.image.images import slurm_image
from slurm_local.slurm_cluster import OPERATOR_NAMESPACE
from slurm_operator.api.shared import names


class ControlPlane(Slurm):
    """One Slurm cluster, looked at from its head: the pod of the slurmctld beside which commands run."""

    head = "slurm-controller-0"

    def run(self, *command: str, timeout_s: float = 60) -> str:
        where = ("exec", "-n", self.namespace, self.head, "-c", "slurmctld", "--", "timeout", "30")
        return self.cluster.kubectl(*where, *command, timeout_s=timeout_s)

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
        """slurmctld pods by name: their uid, and how often their slurmctld was restarted."""
        found = json.loads(
            self.cluster.kubectl(
                "get", "pods", "-n", self.namespace, "-l", "app.kubernetes.io/name=slurmctld", "-o", "json"
            )
        )["items"]
        return {pod["metadata"]["name"]: (pod["metadata"]["uid"], restarts(pod)) for pod in found}

    def wait_ready(self, kind: str, name: str) -> None:
        self.cluster.kubectl(
            "wait", "--for=condition=Ready", f"{kind}/{name}", "-n", self.namespace, "--timeout=300s", timeout_s=320
        )  # fmt: skip

    def loginset(self, **spec: object) -> dict:
        """Login pods without privileges."""
        unprivileged = {"privileged": False, "capabilities": {"add": ["AUDIT_WRITE"]}}
        login = {"image": slurm_image("login"), "imagePullPolicy": "Never", "securityContext": unprivileged}
        return self.kind("LoginSet", "login", {"controllerRef": {"name": "slurm"}, "login": login, **spec})

    def in_login(self, *command: str, stdin: str = "") -> str:
        """A command as root in a login pod."""
        flags = ["-i"] if stdin else []
        where = (
            "exec",
            *flags,
            "-n",
            self.namespace,
            f"deploy/{names.login_workload('login')}",
            "-c",
            "login",
            "--",
        )
        return self.cluster.kubectl(*where, *command, stdin=stdin, timeout_s=90)

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
        for kind in ("token", "nodeset", "loginset", "restapi", "controller", "accounting"):
            self.cluster.kubectl("delete", kind, "--all", "-n", self.namespace, "--wait=false")
        self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false")


@contextlib.contextmanager
def without_operator(cluster: Cluster) -> Iterator[None]:
    """Nobody decides anything meanwhile."""
    _scale_operator(cluster, 0)
    try:
        yield
    finally:
        _scale_operator(cluster, 1)


def _scale_operator(cluster: Cluster, replicas: int) -> None:
    where = ("deployment/slurm-operator", "-n", OPERATOR_NAMESPACE)
    cluster.kubectl("scale", *where, f"--replicas={replicas}")
    cluster.kubectl("rollout", "status", *where, "--timeout=120s")
    if not replicas:
        until(lambda: not operator_pods(cluster), what=lambda: "the operator to end")


def operator_pods(cluster: Cluster) -> list[str]:
    selector = "labelSelector=app.kubernetes.io/name=slurm-operator"
    found = cluster.items(f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods?{selector}")
    return [pod["metadata"]["name"] for pod in found]


def failed_passes(cluster: Cluster) -> int:
    """How many passes of the operator that runs now came to nothing, as it counts them itself."""
    [pod] = operator_pods(cluster)
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{pod}:8080/proxy/metrics"
    text = cluster.kubectl("get", "--raw", path)
    found = re.findall(r'slurm_operator_reconciles_total\{.*result="(?:failed|error)"\} (\S+)', text)
    return round(sum(map(float, found)))


def complaints(cluster: Cluster, namespace: str = "") -> str:
    """What the operator that runs now has complained about last; with a namespace, about objects there."""
    [pod] = operator_pods(cluster)
    lines = cluster.kubectl("logs", pod, "-n", OPERATOR_NAMESPACE).splitlines()
    about = f'"key":"{namespace}/' if namespace else ""
    bad = [line for line in lines if '"level":"warning"' in line or '"level":"error"' in line]
    return "\n".join([line for line in bad if about in line][-20:])


@contextlib.contextmanager
def control_plane_of(cluster: Cluster) -> Iterator[ControlPlane]:
    """Nothing yet, in a namespace of its own."""
    name = f"head-{uuid.uuid4().hex[:6]}"
    make_namespace(cluster, name)
    made = ControlPlane(cluster, name)
    yield made
    made.delete()


@contextlib.contextmanager
def control_plane(
    cluster: Cluster, *more: Callable[[ControlPlane], dict], workers: int = 1, **controller: object
) -> Iterator[ControlPlane]:
    """A Slurm cluster with a slurmrestd and idle workers in a namespace of its own, and what else it needs."""
    with control_plane_of(cluster) as made:
        made.apply(
            *(one(made) for one in more),
            made.files(),
            made.controller(**controller),
            made.restapi(),
            made.nodeset(replicas=workers),
        )
        made.wait_idle(workers, 240)
        yield made


def restarts(pod: dict) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(one["restartCount"] for one in statuses)


def setting(shown: str, key: str) -> str:
    """One value of `scontrol show config`."""
    found = re.search(rf"^{key}\s*=\s*(.*)$", shown, re.MULTILINE)
    return found[1].strip() if found else ""
