"""munged beside a daemon: what the pods of a cluster with auth/munge have more than others.

munged wants a key that only it can read and that is no link, as files of a Secret are; so it gets a copy in
memory. It needs no rights: it runs as a user of its own, without a single capability.
"""

from slurm_operator.api.shared import names
from slurm_operator.api.shared.auth import Auth
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.manifests.builders import parts
from slurm_operator.manifests.meta import Manifest

NAME = "munge"
DIRECTORY = "/run/munge"
SOCKET = f"{DIRECTORY}/munge.socket.2"

_GIVEN = "/mnt/munge"
_KEY_DIRECTORY = "/run/munge-key"

# By --force the directory of the socket may be one that everybody can write to, as volumes of pods are. The
# key is read once, and whoever has it could make any credential, so nobody else gets to see its copy.
START = f"""\
set -eu
umask 077
cp -L {_GIVEN}/{names.MUNGE_KEY_FILE} {_KEY_DIRECTORY}/next
chmod 400 {_KEY_DIRECTORY}/next
mv -f {_KEY_DIRECTORY}/next {_KEY_DIRECTORY}/{names.MUNGE_KEY_FILE}
rm -f {SOCKET} {SOCKET}.lock
umask 022
exec munged --foreground --force --key-file={_KEY_DIRECTORY}/{names.MUNGE_KEY_FILE} --socket={SOCKET} \\
  --pid-file={_KEY_DIRECTORY}/munged.pid --seed-file={_KEY_DIRECTORY}/munged.seed
"""


def sidecar(auth: Auth, image: str) -> Manifest:
    """Starts before the daemon, which waits for its socket, and ends after it."""
    base: Manifest = {
        "name": NAME,
        "image": image,
        "restartPolicy": "Always",
        "command": ["sh", "-c", START],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": names.MUNGE_UID,
            "runAsGroup": names.MUNGE_UID,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "startupProbe": {
            "exec": {"command": ["test", "-S", SOCKET]},
            "periodSeconds": 1,
            "failureThreshold": 60,
        },
        "volumeMounts": [
            {"name": "munge-key", "mountPath": _GIVEN, "readOnly": True},
            {"name": "munge-key-copy", "mountPath": _KEY_DIRECTORY},
            mount(),
        ],
    }
    return parts.container(base, auth.munge)


def ready(source: ConfigSource) -> list[str]:
    """Where people log in: commands find munged, and the files that a volume or sackd brings."""
    directory = "/run/slurm/conf" if source is ConfigSource.CONFIGLESS else "/etc/slurm"
    return ["sh", "-c", f"test -S {SOCKET} && test -e {directory}/slurm.conf"]


def mount() -> Manifest:
    return {"name": "munge-socket", "mountPath": DIRECTORY}


def volumes(key: SecretKey) -> list[Manifest]:
    return [
        parts.projected("munge-key", 0o444, parts.secret_file(key.name, key.key, names.MUNGE_KEY_FILE)),
        parts.memory_volume("munge-key-copy"),
        parts.memory_volume("munge-socket"),
    ]
