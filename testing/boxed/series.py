"""Which Slurm a root has, and what the older one that the operator works with has not."""

import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

from slurm_local.image.debian import unpacked
from slurm_local.image.roots import SLURM_ROOT
from slurm_local.paths import Paths
from slurm_local.progress import Progress

# The oldest Slurm that the operator works with: the same packages of an older suite.
OLDER_SERIES = "24.11"
OLDER_SLURM_ROOT = replace(SLURM_ROOT, name=f"slurm-{OLDER_SERIES}", suite="trixie")

# slurmctld and slurmd answer to HTTP, and slurm.conf knows MetricsType, since this series. Between it and 24.11
# nothing was tried; Slinky's operator, which relies on both, asks for 25.11.
HTTP_SINCE = (25, 11)


@cache
def series_of(rootfs: Path) -> tuple[int, int]:
    """(26, 5) of 26.05.5."""
    said = subprocess.run(
        ["chroot", str(rootfs), "slurmctld", "-V"], capture_output=True, text=True, check=True
    )
    major, minor, _ = said.stdout.split()[-1].split(".", 2)
    return int(major), int(minor)


def has_http(rootfs: Path) -> bool:
    return series_of(rootfs) >= HTTP_SINCE


def older_slurm_rootfs(paths: Paths, progress: Progress) -> Path:
    """The older Slurm, as a directory to run programs in."""
    return unpacked(OLDER_SLURM_ROOT, paths, progress)
