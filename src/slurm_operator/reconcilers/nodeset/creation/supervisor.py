"""Workers whose container runs several programs, slurmd among them, under supervisord."""

from slurm_operator.api.shared.worker_parts import Supervisor
from slurm_operator.manifests.builders import parts
from slurm_operator.manifests.meta import Manifest

CONF = "supervisord.conf"
DIRECTORY = "/etc/supervisor/conf.d"
VOLUME = "supervisord-config"

COMMAND = ["supervisord", "--nodaemon", f"--configuration={DIRECTORY}/{CONF}"]

# The program that starts slurmd reads its options here; our entry point and others do.
OPTIONS = "SLURMD_OPTIONS"


def supervised(slurmd: Manifest) -> Manifest:
    """The container with supervisord for its first program, unless the user names another.

    slurmd's arguments become a variable, before what the user has in it.
    """
    without = {key: value for key, value in slurmd.items() if key != "args"}
    given = [one.get("value", "") for one in slurmd["env"] if one["name"] == OPTIONS]
    others = [one for one in slurmd["env"] if one["name"] != OPTIONS]
    mount = {"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True}
    return {
        **without,
        "command": slurmd.get("command") or COMMAND,
        "env": [*others, {"name": OPTIONS, "value": " ".join([*slurmd["args"], *given])}],
        "volumeMounts": [*slurmd["volumeMounts"], mount],
    }


def volume(given: Supervisor) -> Manifest:
    """A whole directory: single files are never updated."""
    return parts.projected(VOLUME, 0o644, parts.config_map_file(given.config_map_ref.name, CONF, CONF))
