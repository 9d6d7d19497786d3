"""Slurm on the local cluster the way everybody gets it: the operator, and one short Cluster manifest."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from slurm_local import image
from slurm_local.cluster import Cluster, is_ready
from slurm_local.errors import LocalError
from slurm_local.progress import Progress
from slurm_operator.api import registry
from slurm_operator.api.registry import Registry
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.shared import names
from slurm_operator.install import Installation
from slurm_operator.install import installation as install_objects
from slurm_operator.install.admission import WEBHOOK

NAMESPACE = "slurm"
OPERATOR_NAMESPACE = "slurm-operator"
CLUSTER = "demo"
LOGIN = (
    "-n",
    NAMESPACE,
    f"deploy/{names.login_workload(names.cluster_part(CLUSTER, 'login'))}",
    "-c",
    "login",
    "--",
)

CLIENT_S = 20  # A Slurm client that finds no slurmctld asks for minutes.
_READY_S = 300


def manifest(workers: int, nodes: int) -> dict[str, object]:
    """The ten lines. Where there are fewer machines than workers, they share."""
    nodeset: dict[str, object] = {"name": "cpu", "replicas": workers}
    if nodes < workers:
        nodeset["oversubscribeNode"] = True
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": CLUSTER, "namespace": NAMESPACE},
        "spec": {"nodeSets": [nodeset], "logins": [{"name": "login"}]},
    }


def installation(
    operator_image: str, *, is_recording: bool = False, kinds: Registry = registry.DEFAULT
) -> list[dict[str, object]]:
    """What `slurm-operator manifests` prints, with the images that this machine has made."""
    return install_objects(
        Installation(
            image=operator_image,
            webhook_image=image.WEBHOOK_IMAGE,
            namespace=OPERATOR_NAMESPACE,
            pull_policy="Never",
            slurm_images=image.slurm_image("{daemon}"),
            mariadb_image=image.slurm_image("mariadb"),
            is_recording=is_recording,
            kinds=kinds,
        )
    )


def wait_established(kubectl: Callable[..., str], tries: int = 20) -> None:
    """Until the API server serves every CRD. kubectl gives up on one so new that it has no condition yet."""
    for left in reversed(range(tries)):
        try:
            kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
            return
        except LocalError:
            if not left:
                raise
            time.sleep(0.5)


def install(cluster: Cluster, operator_image: str, kinds: Registry = registry.DEFAULT) -> None:
    """CRDs, operator and webhook; until the operator has started. Nothing has to wait for the webhook."""
    cluster.apply([crd(model) for model in kinds.models])
    wait_established(cluster.kubectl)
    cluster.apply(installation(operator_image, kinds=kinds))
    wait_started(cluster, "slurm-operator")


def wait_started(cluster: Cluster, deployment: str) -> None:
    """Until every pod of one part of the installation is there and Ready."""
    where = ("-n", OPERATOR_NAMESPACE, "--timeout=120s")
    cluster.kubectl("rollout", "status", f"deployment/{deployment}", *where)


def start(
    cluster: Cluster,
    operator: Path,
    workers: int,
    objects: Callable[[], Sequence[dict[str, object]]],
    progress: Progress,
) -> None:
    """Brings Slurm up from a Cluster and what it mounts, until a job could run on all workers."""
    with progress.step("The operator and its webhook"):
        cluster.load_image(operator)
        install(cluster, image.OPERATOR_IMAGE)
    with progress.step(f"Slurm with {workers} workers, from one Cluster") as step:
        cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        cluster.apply(objects())
        ready = ("--for=condition=Ready", f"cluster.slinky.slurm.net/{CLUSTER}", "-n", NAMESPACE)
        cluster.kubectl("wait", *ready, f"--timeout={_READY_S}s", timeout_s=_READY_S + 30)
        step.say("waiting for every pod")
        wait_started(cluster, WEBHOOK)
        cluster.parts.wait_until(lambda: all(map(is_ready, pods(cluster))), "every Slurm pod to be Ready")
        wait_until_idle(cluster, workers, login)


def pods(cluster: Cluster) -> list[dict[str, object]]:
    return cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods")


def wait_until_idle(cluster: Cluster, workers: int, login: Callable[..., str]) -> None:
    """Until Slurm could start a job on so many; `login` runs its commands."""
    cluster.parts.wait_until(lambda: _idle_workers(cluster, login) >= workers, "the workers to register")


def _idle_workers(cluster: Cluster, login: Callable[..., str]) -> int:
    asked = ("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N")
    try:
        return len(set(login(cluster, *asked).split()))
    except (LocalError, subprocess.TimeoutExpired):  # No login pod yet, or no slurmctld behind it.
        return 0


def login(cluster: Cluster, *command: str) -> str:
    """What a command prints in the login pod."""
    limited = ["timeout", str(CLIENT_S), *command]
    return cluster.kubectl("exec", *LOGIN, *limited, timeout_s=2 * CLIENT_S)
