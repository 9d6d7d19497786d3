"""Where pods find the shared root, what is mounted on it, and Slurm's files in it."""

from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nebius.shared import pods
from slurm_operator.reconcilers.nebius.shared.families import Family

PLUGINS: Final = "/usr/lib/slurm-operator/plugins"

# By these, programs in the root ask the sssd of their pod about users. Without one the directory is empty.
_SSSD_PIPES: Final = "/var/lib/sss/pipes"

# What the plugin of our images is told, in plugstack.conf and by the check before slurmd starts.
SHARED_ROOT: Final = f"root={names.ROOT} ro={PLUGINS} ro={_SSSD_PIPES}"

# The variable by which slurmd of our images is told the same. Workers of Soperator's images have none.
SHARED_ROOT_VARIABLE: Final = "SHARED_ROOT"


def below(family: Family) -> str:
    """Where sub mounts of the root appear: ours find them in place, Soperator's put them there."""
    return names.ROOT if family is Family.OURS else names.UPPER


def slurm_conf_mount(family: Family, source: str) -> list[Manifest]:
    """/etc/slurm of a container of ours; Soperator's link it into the root themselves."""
    if family is Family.SOPERATOR or source != "files":
        return []
    return [pods.mount(names.JAIL, "/etc/slurm", sub_path="etc/slurm", read_only=True)]
