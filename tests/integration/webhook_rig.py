"""`slurm-operator webhook` as a process of its own, asked by a real API server over TLS."""

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

from slurm_operator.manifests.meta import Manifest
from testing.control_plane import Plane
from testing.managers import ManagerProcess, free_port, until


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
