"""A Cluster that can be made ill: what a person does to it, and what `kubectl slurm` then says."""

import json
import re
import uuid
from pathlib import Path

from click.testing import CliRunner
from e2e_pods import make_namespace
from operator_rig import job_state, node_states, until

from slurm_local.cluster import Cluster
from slurm_operator.cli.kubectl import kubectl_slurm

# Workers that went silent or were made again come back without help, and soon.
CONF = "GresTypes=gpu\nMinJobAge=10\nReturnToService=2\nSlurmdTimeout=30\n"

# Longer than anything takes here; how long it takes is not what is tested.
PATIENCE_S = 300


class Patient:
    """The Cluster `demo` in a namespace of its own. NodeSet `cpu` does the work, `odd` is there to fall ill."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.namespace = cluster, f"ill-{uuid.uuid4().hex[:6]}"
        make_namespace(cluster, self.namespace)
        self.wants()

    # ---- What a person does

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments)

    def wants(self, odd: dict | None = None, **spec: object) -> None:
        """Applies the manifest of the Cluster, with these changes to it and to its NodeSet `odd`."""
        workers = {"oversubscribeNode": True}
        node_sets = [
            {"name": "cpu", "replicas": 2, **workers},
            {"name": "odd", "replicas": 1, **workers, **(odd or {})},
        ]
        healthy = {"isolation": "process", "extraConf": CONF, "nodeSets": node_sets}
        self.make("Cluster", "demo", {**healthy, **spec})

    def make(self, kind: str, name: str, spec: dict) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        manifest = {
            "apiVersion": "slinky.slurm.net/v1beta1",
            "kind": kind,
            "metadata": metadata,
            "spec": spec,
        }
        self.cluster.apply([manifest])

    def put(
        self, kind: str, name: str, api: str = "v1", labels: dict | None = None, **fields: object
    ) -> None:
        """Applies an object of Kubernetes' own."""
        metadata = {"name": name, "labels": labels or {}}
        if kind not in ("PersistentVolume", "StorageClass"):
            metadata["namespace"] = self.namespace
        self.cluster.apply([{"apiVersion": api, "kind": kind, "metadata": metadata, **fields}])

    def run(self, *command: str) -> str:
        """A command beside slurmctld."""
        return self.inside("demo-controller-0", "slurmctld", "timeout", "30", *command)

    def inside(self, pod: str, container: str, *command: str) -> str:
        where = ("exec", "-n", self.namespace, pod, "-c", container, "--")
        return self.cluster.kubectl(*where, *command, timeout_s=60)

    def submit(self, script: str, *options: str) -> int:
        out = self.run("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}")
        return int(re.match(r"\d+", out.strip())[0])

    # ---- What can be seen

    def get(self, what: str) -> dict:
        return json.loads(self.kubectl("get", what, "-o", "json"))

    def is_ready(self, what: str = "cluster.slinky.slurm.net/demo") -> bool:
        conditions = (self.get(what).get("status") or {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)

    def workers(self) -> dict[str, str]:
        """On which machine each worker is."""
        pods = json.loads(self.kubectl("get", "pods", "-l", "app.kubernetes.io/name=slurmd", "-o", "json"))
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods["items"]}

    def volume(self, claim: str) -> Path:
        """Where this machine has the files of a claim."""
        return self.cluster.directory / "volumes" / self.get(f"pvc/{claim}")["spec"]["volumeName"]

    def job_state(self, job: int) -> str:
        return job_state(self.run, job)

    def explain(self, what: str, *flags: str) -> tuple[bool, str]:
        """Whether all is well, and what is said."""
        return explain(self.cluster.kubeconfig, self.namespace, what, *flags)

    # ---- Waiting

    def wait_told(self, what: str, *words: str, well: bool = False) -> str:
        """The explanation that has these words and says that something is wrong, or that nothing is."""
        last = (True, "")

        def is_told() -> bool:
            nonlocal last
            last = self.explain(what)
            return last[0] is well and all(word in last[1] for word in words)

        until(is_told, PATIENCE_S, lambda: f"{words} in what is said about {what}: {last[1]}")
        return last[1]

    def wait_well(self, what: str = "cluster/demo") -> None:
        until(
            lambda: self.explain(what)[0], PATIENCE_S, lambda: f"{what} to be well: {self.explain(what)[1]}"
        )

    def wait_idle(self) -> None:
        """All workers take jobs, and none has any."""
        until(
            lambda: list(node_states(self.run).values()) == ["idle"] * 3,
            PATIENCE_S,
            lambda: f"idle workers: {node_states(self.run)}",
        )

    def wait_over(self, job: int) -> None:
        until(
            lambda: self.job_state(job) in ("COMPLETED", "CANCELLED", "FORGOTTEN"),
            PATIENCE_S,
            lambda: f"job {job} to end: it is {self.job_state(job)}",
        )


def explain(kubeconfig: Path, namespace: str, what: str, *flags: str) -> tuple[bool, str]:
    words = ["explain", "--kubeconfig", str(kubeconfig), "-n", namespace, what, *flags]
    done = CliRunner().invoke(kubectl_slurm, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code == 0, done.output
