"""A Slurm cluster from manifests written by hand, for as long as no operator makes one."""

import base64
import secrets
import subprocess
from pathlib import Path
from string import Template

from slurm_operator.local.cluster import Cluster, is_ready
from slurm_operator.local.errors import LocalError
from slurm_operator.local.progress import Progress

NAMESPACE = "slurm"
_TEMPLATE = Path(__file__).with_name("slurm.yaml")
_CLIENT_S = 20  # A Slurm client that finds no slurmctld asks for minutes.


def manifests(image: str, workers: int) -> str:
    """Everything but the keys, as YAML."""
    return Template(_TEMPLATE.read_text()).substitute(namespace=NAMESPACE, image=image, workers=workers)


def keys() -> dict[str, object]:
    """A Secret with new keys: one that the daemons share, one that signs tokens."""
    data = {"slurm.key": secrets.token_bytes(1024), "jwt.key": secrets.token_bytes(32)}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "slurm-keys", "namespace": NAMESPACE},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


def start(cluster: Cluster, image: str, workers: int, progress: Progress) -> str:
    """Brings Slurm up and runs a first job on all workers; what the job printed."""
    with progress.step(f"Slurm with {workers} workers") as step:
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=manifests(image, workers))
        cluster.apply([keys()])
        cluster.parts.wait_until(lambda: idle_workers(cluster) >= workers, "the workers to register")
        step.say("waiting for every pod")
        cluster.parts.wait_until(lambda: all(map(is_ready, pods(cluster))), "every Slurm pod to be Ready")
    with progress.step("First job"):
        return login(cluster, "srun", f"--nodes={workers}", "hostname")


def pods(cluster: Cluster) -> list[dict[str, object]]:
    return cluster.items(f"/api/v1/namespaces/{NAMESPACE}/pods")


def idle_workers(cluster: Cluster) -> int:
    """How many workers Slurm could start a job on."""
    try:
        return len(login(cluster, "sinfo", "--noheader", "--Node", "--states=idle").splitlines())
    except (LocalError, subprocess.TimeoutExpired):  # No login pod yet, or no slurmctld behind it.
        return 0


def login(cluster: Cluster, *command: str) -> str:
    """What a command prints in the login pod."""
    limited = ["timeout", str(_CLIENT_S), *command]
    return cluster.kubectl("exec", "-n", NAMESPACE, "deploy/login", "--", *limited, timeout_s=2 * _CLIENT_S)
