"""`slurm-operator webhook` as a process of its own, asked by a real API server over TLS."""

import json
import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

from kinds_rig import get

from slurm_operator.install import rights
from slurm_operator.local.controlplane import Plane
from slurm_operator.manifests import admission
from slurm_operator.manifests.meta import Manifest
from slurm_operator.webhook.process import Settings
from support.managers import ManagerProcess, free_port, until

RBAC = "rbac.authorization.k8s.io/v1"
SECRET = Settings.secret


@dataclass
class WebhookProcess(ManagerProcess):
    port: int

    def post(self, path: str, body: bytes) -> tuple[int, str]:
        return http(f"https://127.0.0.1:{self.port}{path}", body)

    @property
    def certificate(self) -> str:
        """What somebody who connects now is shown."""
        return ssl.get_server_certificate(("127.0.0.1", self.port), timeout=10)


def http(url: str, body: bytes | None = None) -> tuple[int, str]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # What is asked here is no secret.
    try:
        with urllib.request.urlopen(url, data=body, timeout=10, context=context) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def webhook_user(plane: Plane, user: str = "webhook") -> Path:
    """A kubeconfig for a webhook with the rights that an installation gives it, and to ask for SlurmClusters."""
    guards = rights.Right(group="slurm.nebius.ai", resources=("slurmclusters",), verbs=("get",))
    granted = (
        *rights.WEBHOOK_LOOKUPS,
        *rights.WEBHOOK_BINDING,
        *rights.webhook_certificates(SECRET),
        *rights.webhook_configurations(admission.NAME),
        guards,
    )
    plane.kubectl("apply", "-f", "-", stdin=json.dumps({
        "apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": user}, "rules": rights.rules(granted),
    }))  # fmt: skip
    plane.kubectl("apply", "-f", "-", stdin=json.dumps({
        "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": user},
        "roleRef": {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": RBAC.partition("/")[0], "kind": "User", "name": user}],
    }))  # fmt: skip
    return plane.kubeconfig_for(user)


@contextmanager
def running_webhook(kubeconfig: Path, log: Path, *flags: str) -> Iterator[WebhookProcess]:
    """A webhook on free ports of loopback; killed at the end, if it still runs."""
    port, health, metrics = free_port(), free_port(), free_port()
    command = [
        sys.executable, "-m", "slurm_operator.cli", "webhook", "--kubeconfig", str(kubeconfig),
        "--server-addr", f"127.0.0.1:{port}", "--health-addr", f"127.0.0.1:{health}",
        "--metrics-addr", f"127.0.0.1:{metrics}", "--cert-hosts", "127.0.0.1", *flags,
    ]  # fmt: skip
    with log.open("ab") as out:
        process = subprocess.Popen(command, stderr=out, stdout=out, env=dict(os.environ))
    try:
        yield WebhookProcess(process, health, metrics, log, port)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def at(port: int) -> Callable[[str], Manifest]:
    """How the API server reaches a webhook on this machine."""
    return lambda path: {"url": f"https://127.0.0.1:{port}{path}"}


def wait_known(plane: Plane, name: str, kind: str = "validatingwebhookconfiguration") -> None:
    def is_known() -> bool:
        found = get(plane, "", kind, name)
        return all(one["clientConfig"].get("caBundle") for one in found["webhooks"])

    until(is_known, what=f"the authority in {kind} {name}")
