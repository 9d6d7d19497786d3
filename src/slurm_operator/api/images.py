"""Images that run where a manifest names none."""

from typing import Final

SLURM_IMAGES: Final = "ghcr.io/slinkyproject"
SLURM_TAG: Final = "26.05-ubuntu26.04"
MARIADB_IMAGE: Final = "docker.io/library/mariadb:11.8"


def default_image(daemon: str) -> str:
    """The image of `slurmctld`, `slurmd`, `slurmdbd`, `slurmrestd`, `login` or `mariadb`."""
    return MARIADB_IMAGE if daemon == "mariadb" else f"{SLURM_IMAGES}/{daemon}:{SLURM_TAG}"
