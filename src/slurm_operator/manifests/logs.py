"""The sidecar that prints a daemon's log, so that `kubectl logs` has it."""

from collections.abc import Mapping
from typing import Any

from slurm_operator.manifests import parts
from slurm_operator.manifests.meta import Manifest

VOLUME = "slurm-logfile"
DIRECTORY = "/var/log/slurm"

# A named pipe in memory: nothing fills up, and a daemon that is restarted finds it again.
_FOLLOW = """\
trap 'exit 0' TERM
rm -f "$SOCKET" && mkfifo -m 777 "$SOCKET"
while true; do cat "$SOCKET" & wait $!; sleep 1; done
"""


def sidecar(file: str, image: str, wishes: Mapping[str, Any]) -> Manifest:
    """Prints `file` of the log directory. Without an image of its own it uses the daemon's."""
    base: Manifest = {
        "name": "logfile",
        "restartPolicy": "Always",
        "command": ["sh", "-c", _FOLLOW],
        "env": [{"name": "SOCKET", "value": f"{DIRECTORY}/{file}"}],
        "volumeMounts": [mount()],
    }
    return parts.container(base | ({"image": image} if image else {}), wishes)


def mount() -> Manifest:
    return {"name": VOLUME, "mountPath": DIRECTORY}


def volume() -> Manifest:
    return parts.memory_volume(VOLUME)
