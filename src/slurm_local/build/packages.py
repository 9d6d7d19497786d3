"""Programs that the distribution carries: installed when they are missing."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from slurm_local.build import versions
from slurm_local.errors import LocalError
from slurm_local.progress import Progress


def missing(packages: Mapping[str, str] = versions.DEBIAN_PACKAGES) -> list[str]:
    """Packages that are not installed, judged by the programs we call."""
    return [package for file, package in packages.items() if not Path(file).exists()]


def install(progress: Progress, packages: Mapping[str, str] = versions.DEBIAN_PACKAGES) -> None:
    """Makes sure that every program is there; asks for help where it cannot install one itself."""
    wanted = missing(packages)
    if not wanted:
        return
    if shutil.which("apt-get") is None:
        files = [file for file, package in packages.items() if package in wanted]
        raise LocalError(
            f"These programs are missing: {', '.join(files)}. Packages can only be installed on Debian and "
            f"its relatives (there they are called {', '.join(wanted)}); please install them yourself."
        )
    if os.geteuid() != 0:
        raise LocalError(f"Packages are missing. As root: apt-get install {' '.join(wanted)}")
    with progress.step(f"Installing {', '.join(wanted)}"):
        done = _apt_get("install", *wanted)
        if done.returncode != 0:  # The lists may be old, or never fetched.
            _apt_get("update")
            done = _apt_get("install", *wanted)
        if done.returncode != 0:
            raise LocalError(f"apt-get install {' '.join(wanted)} failed:\n{done.stderr.strip()}")


def _apt_get(*arguments: str) -> subprocess.CompletedProcess[str]:
    options = ["--yes", "--quiet", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"]
    return subprocess.run(
        ["apt-get", *options, *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
