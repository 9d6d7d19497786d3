"""`up` where it cannot work: everything is said before anything is started, and a disk that fills up costs nothing."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_local.paths import Paths

NAME = f"e2e-refused-{os.getpid()}"
PROGRAM = (sys.executable, "-u", "-m", "slurm_operator.cli")
MIB = 1024**2

# What the memory of a disk has beside what `up` asks for.
SPARE_MIB = 80


def on_a_disk_of(mib: int, place: Path, *words: str) -> list[str]:
    """A command that sees a disk of this size at that place, and nobody else does."""
    place.mkdir()
    mount = f"mount -t tmpfs -o size={mib}m small {place}"
    return ["unshare", "--mount", "sh", "-c", f"{mount} && exec {shlex.join(words)}"]


def said(command: list[str], **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=280, env={**os.environ, **environment},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("words", [("up",), ("up", "--kubernetes-only")])
def test_a_user_who_is_not_root_is_told_before_anything_is_made(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    home = tmp_path / "state"

    code, told = said(["unshare", "--user", *PROGRAM, *words, "--name", NAME], SLURM_OPERATOR_HOME=str(home))

    assert code == 1
    assert "Containers and networks need root. Run it with sudo" in told
    assert "Traceback" not in told
    assert not list(home.glob("clusters/*/*"))


def test_a_disk_that_is_too_small_is_named_with_what_is_needed(tmp_path: Path) -> None:
    small = tmp_path / "small"

    code, told = said(on_a_disk_of(64, small, *PROGRAM, "up", "--name", NAME), SLURM_OPERATOR_HOME=str(small))

    assert code == 1
    assert f"{small} has 0.1 GiB left; 2 GiB are needed." in told
    assert "Traceback" not in told


@pytest.mark.full
def test_a_disk_that_fills_up_meanwhile_is_named_and_nothing_is_left(paths: Paths, tmp_path: Path) -> None:
    """Somebody else fills it as soon as the cluster has its first files there."""
    place = tmp_path / "disk"
    filling = (
        f"(until ls {place}/clusters/{NAME}/pki >/dev/null 2>&1; do sleep 0.05; done;"
        f" head -c 4G /dev/zero > {place}/filler 2>/dev/null) & exec {shlex.join((*PROGRAM, 'up', '--kubernetes-only', '--name', NAME))}"
    )
    command = on_a_disk_of(2048 + SPARE_MIB, place, "sh", "-c", filling)

    code, told = said(command, SLURM_OPERATOR_HOME=str(place))

    assert code == 1
    assert "Traceback" not in told
    assert "No space is left" in told or "no space left on device" in told.lower()
    assert not subprocess.run(["pgrep", "-f", f"clusters/{NAME}/"], capture_output=True, check=False).stdout
