"""The libraries of the operator's image as one layer, for the image's Python and pinned by hash."""

import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from slurm_local.build.stamps import once
from slurm_local.errors import LocalError
from slurm_local.image.tars import files_below, write_layer
from slurm_local.paths import PACKAGE, Paths
from slurm_local.progress import Progress

_PREFIX = "/usr/lib/slurm-operator/dependencies"
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")


def dependencies(python: str, paths: Paths, progress: Progress) -> Path:
    """A layer with what `requirements/runtime.txt` pins, built for that version of Python."""
    requirements = _requirements()
    facts = f"{python} {platform.machine()} {_PREFIX}\n".encode() + requirements.read_bytes()
    digest = hashlib.sha256(facts).hexdigest()[:12]

    def fill(directory: Path) -> None:
        with progress.step(f"Fetching the operator's libraries for Python {python}", "10 MB, once"):
            site = directory / "site"
            shutil.rmtree(site, ignore_errors=True)
            _pip_install(requirements, site, python)
            write_layer(directory / "layer.tar", files_below(site, _PREFIX))
            shutil.rmtree(site)

    return once(paths.images / f"dependencies-{digest}", fill) / "layer.tar"


def _pip_install(requirements: Path, site: Path, python: str) -> None:
    machine = platform.machine()
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--no-compile", "--only-binary=:all:", "--target", str(site)]
    command += ["--implementation", "cp", "--python-version", python]
    command += [f"--platform={name}_{machine}" for name in _PLATFORMS]
    done = subprocess.run([*command, "-r", requirements], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalError(f"pip could not install the operator's libraries:\n{done.stderr.strip()}")


def _requirements() -> Path:
    """In a checkout beside the sources; in an installation inside the package."""
    candidates = (PACKAGE.parents[1] / "requirements" / "runtime.txt", PACKAGE / "requirements.txt")
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise LocalError("The operator's image is made from a checkout: requirements/runtime.txt is not here.")
