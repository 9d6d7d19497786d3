"""The cluster that is tormented: real machines, the operator in a pod, a Slurm cluster with accounting."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from operator_rig import Slurm

from chaos import jobs
from chaos.jobs import Job
from slurm_operator import wire
from slurm_operator.local import cgroups, image, stop
from slurm_operator.local.cluster import Cluster
from slurm_operator.local.errors import LocalError
from slurm_operator.local.image.images import slurm_image
from slurm_operator.local.operated import OPERATOR_NAMESPACE, install
from slurm_operator.local.paths import Paths
from slurm_operator.local.progress import PlainProgress
from slurm_operator.local.start import Wanted, up

NAMESPACE = "chaos"
MACHINES = 3
WORKERS = 4


class Stage:
    """What faults and runs work with. Workers are called cpu-0, cpu-1 and so on."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.slurm = Slurm(cluster, NAMESPACE)
        self.jobs: list[Job] = []

    def set_up(self) -> None:
        objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
        self.cluster.apply(objects)
        self.slurm.apply(self.slurm.files(), *self.control_plane(), self.nodeset())
        self.settle(lambda: None)

    def control_plane(self) -> list[dict]:
        """Controller, RestApi, and an Accounting with a database of its own."""
        ours = {"image": slurm_image("slurmdbd"), "imagePullPolicy": "Never"}
        database = {"image": slurm_image("mariadb"), "imagePullPolicy": "Never"}
        accounting = self.slurm.kind(
            "Accounting",
            "slurm",
            {"slurmdbd": ours, "managed": {"mariadb": database, "storage": {"size": "1Gi"}}},
        )
        return [accounting, self.slurm.controller(accountingRef={"name": "slurm"}), self.slurm.restapi()]

    def nodeset(self, **spec: object) -> dict:
        return self.slurm.nodeset(replicas=WORKERS, **spec)

    def submit(self, chance: random.Random) -> None:
        """One more job, if slurmctld takes it right now."""
        ledger, seconds, script = jobs.script(self.slurm.ledgers, chance)
        with suppress(LocalError):
            number = self.slurm.submit(script, "--no-requeue", "--cpus-per-task=1")
            self.jobs.append(Job(number, ledger, seconds))

    def busy(self) -> set[str]:
        """Slurm nodes where a job runs, by the jobs' own account."""
        return {node for job in self.jobs if (node := job.node) is not None}

    def get(self, kind: str, name: str) -> dict:
        found: dict = wire.decode_any(
            self.cluster.kubectl("get", kind, name, "-n", NAMESPACE, "-o", "json").encode()
        )
        return found

    def patch(self, kind: str, name: str, spec: object) -> None:
        body = wire.encode({"spec": spec}).decode()
        self.cluster.kubectl("patch", kind, name, "-n", NAMESPACE, "--type=merge", "-p", body)

    def machine_of(self, worker: str) -> int:
        """The number of the machine that a worker runs on."""
        return int(self.get("pod", worker)["spec"]["nodeName"].rpartition("-")[2])

    def workers_on(self, machine: int) -> set[str]:
        out = self.cluster.kubectl(
            "get", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=slurmd",
            f"--field-selector=spec.nodeName=node-{machine}", "-o", "jsonpath={.items[*].metadata.name}",
        )  # fmt: skip
        return set(out.split())

    def signal(self, program: str, number: signal.Signals) -> None:
        """To every process of the cluster with this name, or with these words in its command line."""
        for pid in cgroups.processes(cgroups.path_of(self.cluster.name)):
            with suppress(OSError):
                entry = Path(f"/proc/{pid}")
                command = entry.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if entry.joinpath("comm").read_text().strip() == program or (
                    " " in program and program in command
                ):
                    os.kill(pid, number)

    def picture(self) -> str:
        """What a person would look at first when it does not settle."""
        looks = (
            ("get", "pods,nodesets,controllers,restapis,accountings", "-o", "wide"),
            ("get", "nodeset,controller", "-o", "yaml"),
            ("get", "events", "--sort-by=.lastTimestamp"),
            ("logs", "slurm-controller-0", "-c", "slurmctld", "--tail=60"),
            ("logs", "-n", OPERATOR_NAMESPACE, "deploy/slurm-operator", "--tail=80"),
        )
        return "\n".join(self._looked(look) for look in looks)

    def _looked(self, look: tuple[str, ...]) -> str:
        where = () if "-n" in look else ("-n", NAMESPACE)
        try:
            return f"$ kubectl {' '.join(look)}\n{self.cluster.kubectl(*look, *where)}"
        except LocalError as error:
            return f"$ kubectl {' '.join(look)}\n{error}"

    def settle(self, each_moment: Callable[[], None], deadline_s: float = 300) -> float:
        """Until everything is as the manifests say and no job runs any more; how long that took."""
        start = time.monotonic()
        while trouble := self.trouble():
            if time.monotonic() - start > deadline_s:
                raise TimeoutError(f"does not settle: {trouble}")
            each_moment()
            time.sleep(0.5)
        return time.monotonic() - start

    def trouble(self) -> str:
        """What is not yet as it should be; empty when all is well."""
        try:
            states = self.slurm.states()
            wanted = {f"cpu-{number}": "idle" for number in range(WORKERS)}
            if states != wanted:
                return f"Slurm nodes are {states}"
            for kind, name in (("controller", "slurm"), ("restapi", "slurm"), ("nodeset", "cpu")):
                conditions = self.get(kind, name)["status"].get("conditions", [])
                ready = next((one for one in conditions if one["type"] == "Ready"), None)
                if ready is None or ready["status"] != "True":
                    return f"{kind} is not Ready: {ready and ready['message']}"
        except LocalError as error:
            return f"cannot look: {error}"
        running = [job.number for job in self.jobs if job.node is not None and not job.excuses]
        return f"jobs run: {running}" if running else ""


@contextmanager
def stage(name: str, patch: str = "") -> Iterator[Stage]:
    """A cluster of its own, from nothing to nothing. `patch`: Python that the operator runs first."""
    paths, progress = Paths.of(), PlainProgress()
    archives = (image.pause_archive(paths, progress), image.slurm_archive(paths, progress))
    cluster, _ = up(Wanted(name, MACHINES, archives=archives), paths, progress)
    try:
        cluster.load_image(image.operator_archive(paths, progress))
        install(cluster, image.OPERATOR_IMAGE)
        if patch:
            _patch_operator(cluster, patch)
        made = Stage(cluster)
        made.set_up()
        yield made
    finally:
        stop.down(name, paths, progress)


def _patch_operator(cluster: Cluster, code: str) -> None:
    """Has every Python process of the operator run this code at its start."""
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "patch", "namespace": OPERATOR_NAMESPACE},
        "data": {"sitecustomize.py": code},
    }
    cluster.apply([config])
    body = {
        "spec": {"template": {"spec": {
            "volumes": [{"name": "patch", "configMap": {"name": "patch"}}],
            "containers": [{
                "name": "manager", "env": [{"name": "PYTHONPATH", "value": "/patch"}],
                "volumeMounts": [{"name": "patch", "mountPath": "/patch"}],
            }],
        }}}
    }  # fmt: skip
    where = ("-n", OPERATOR_NAMESPACE)
    cluster.kubectl(
        "patch", "deployment", "slurm-operator", *where, "--type=strategic", "-p", wire.encode(body).decode()
    )
    cluster.kubectl("rollout", "status", "deployment/slurm-operator", *where, "--timeout=120s")
