"""The container images of the local cluster, made of distribution packages and without a container engine."""

from slurm_operator.local.image.images import (
    OPERATOR_IMAGE,
    PAUSE_IMAGE,
    SLURM_IMAGE,
    WEBHOOK_IMAGE,
    operator_archive,
    pause_archive,
    slurm_archive,
    slurm_image,
)
from slurm_operator.local.image.roots import slurm_rootfs

__all__ = [
    "OPERATOR_IMAGE",
    "PAUSE_IMAGE",
    "SLURM_IMAGE",
    "WEBHOOK_IMAGE",
    "operator_archive",
    "pause_archive",
    "slurm_archive",
    "slurm_image",
    "slurm_rootfs",
]
