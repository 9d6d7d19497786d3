"""The container images of the local cluster, made of distribution packages and without a container engine."""

from slurm_local.image.images import (
    OPERATOR_IMAGE,
    PAUSE_IMAGE,
    SLURM_IMAGE,
    SOPERATOR_IMAGE,
    WEBHOOK_IMAGE,
    operator_archive,
    pause_archive,
    populate_archive,
    slurm_archive,
    slurm_image,
)
from slurm_local.image.roots import slurm_rootfs

__all__ = [
    "OPERATOR_IMAGE",
    "PAUSE_IMAGE",
    "SLURM_IMAGE",
    "SOPERATOR_IMAGE",
    "WEBHOOK_IMAGE",
    "operator_archive",
    "pause_archive",
    "populate_archive",
    "slurm_archive",
    "slurm_image",
    "slurm_rootfs",
]
