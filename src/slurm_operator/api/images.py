"""Images that run where a manifest names none.

Whoever runs the operator may name others in its environment: one pattern for the daemons of Slurm, with
`{daemon}` where the daemon's name belongs, and one image for MariaDB.
"""

import os
from typing import Final

PATTERN_VARIABLE: Final = "SLURM_OPERATOR_IMAGES"
MARIADB_VARIABLE: Final = "SLURM_OPERATOR_MARIADB_IMAGE"

SLURM_IMAGES: Final = "ghcr.io/slinkyproject/{daemon}:26.05-ubuntu26.04"
MARIADB_IMAGE: Final = "docker.io/library/mariadb:11.8"


def default_image(daemon: str) -> str:
    """The image of `slurmctld`, `slurmd`, `slurmdbd`, `slurmrestd`, `login` or `mariadb`."""
    if daemon == "mariadb":
        return os.environ.get(MARIADB_VARIABLE) or MARIADB_IMAGE
    return (os.environ.get(PATTERN_VARIABLE) or SLURM_IMAGES).replace("{daemon}", daemon)
