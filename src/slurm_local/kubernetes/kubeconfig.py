"""Files that let a client talk to the API server, and the client that everybody knows."""

import base64
import subprocess
from pathlib import Path

import yaml

from slurm_local.errors import LocalError
from slurm_local.kubernetes.pki import Pair, write_secret


def write_kubeconfig(path: Path, url: str, authority: Path, client: Pair, context: str = "local") -> Path:
    """A kubeconfig with everything inside it, so that it can be copied; readable by its owner only."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [
            {"name": context, "cluster": {"server": url, "certificate-authority-data": _text(authority)}}
        ],
        "users": [
            {
                "name": context,
                "user": {
                    "client-certificate-data": _text(client.certificate),
                    "client-key-data": _text(client.key),
                },
            }
        ],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
    }
    write_secret(path, yaml.safe_dump(config, sort_keys=False).encode())
    return path


def kubectl(
    program: Path, kubeconfig: Path, *args: str, stdin: str = "", timeout_s: float | None = None
) -> str:
    """What kubectl prints. Raises LocalError with what it complained about."""
    command = [str(program), f"--kubeconfig={kubeconfig}", *args]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=timeout_s
    )
    if done.returncode != 0:
        raise LocalError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


def _text(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
