"""The sidecar that prints a daemon's log, so that `kubectl logs` has it."""

from collections.abc import Mapping
from typing import Any

from slurm_operator.manifests.builders import parts
from slurm_operator.manifests.meta import Manifest

VOLUME = "slurm-logfile"
NAME = "logfile"
DIRECTORY = "/var/log/slurm"

# A named pipe in memory: nothing fills up, and a daemon that is restarted finds it again. It is held open for
# reading and writing, so that it has a reader at every moment: without one a daemon that starts its successor
# would wait, or be killed by its own next line.
#
# In a worker jobs of all users run beside it. They could write lines of slurmd there, or put a link in its
# place, which slurmd would follow as root. So only root can write to the pipe and to its directory. Where
# the sidecar is somebody else, the daemon may be as well, and both stay open.
FOLLOW = """\
trap 'exit 0' TERM
mode=777
if [ "$(id -u)" = 0 ]; then
  mode=600
  chmod 755 "${SOCKET%/*}"
fi
[ -p "$SOCKET" ] || { rm -f "$SOCKET" && mkfifo -m "$mode" "$SOCKET"; }
exec 3<> "$SOCKET"
cat <&3 & wait $!
"""


def sidecar(file: str, image: str, wishes: Mapping[str, Any]) -> Manifest:
    """Prints `file` of the log directory. Without an image of its own it uses the daemon's."""
    base: Manifest = {
        "name": NAME,
        "restartPolicy": "Always",
        "command": ["sh", "-c", FOLLOW],
        "env": [{"name": "SOCKET", "value": f"{DIRECTORY}/{file}"}],
        "volumeMounts": [mount()],
    }
    return parts.container(base | ({"image": image} if image else {}), wishes)


def mount() -> Manifest:
    return {"name": VOLUME, "mountPath": DIRECTORY}


def volume() -> Manifest:
    return parts.memory_volume(VOLUME)
