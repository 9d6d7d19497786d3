"""The sidecar that prints a daemon's log, run for real on a pipe of its own."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from slurm_operator.manifests.builders.logs import FOLLOW

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def sidecar(tmp_path: Path):
    started = []

    def start() -> subprocess.Popen[str]:
        pipe = tmp_path / "slurmd.log"
        process = subprocess.Popen(
            ["sh", "-c", FOLLOW],
            env={**os.environ, "SOCKET": str(pipe)},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        end(process)
        process.stdout.close()


def end(process: subprocess.Popen[str]) -> None:
    """As a container ends: with everything in it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=10)


def log(path: Path, line: str) -> None:
    """As a daemon that starts, writes and ends. Raises when nobody reads."""
    subprocess.run(
        ["sh", "-c", f'until [ -p "{path}" ]; do :; done; echo {line} > "{path}"'], check=True, timeout=30
    )


def test_what_one_daemon_after_the_other_writes_is_printed(sidecar, tmp_path):
    process = sidecar()

    for line in ("first", "second", "third"):
        log(tmp_path / "slurmd.log", line)
        assert process.stdout.readline() == f"{line}\n"


def test_a_daemon_writes_on_when_the_sidecar_was_started_anew(sidecar, tmp_path):
    first = sidecar()
    log(tmp_path / "slurmd.log", "before")
    assert first.stdout.readline() == "before\n"
    daemon = os.open(tmp_path / "slurmd.log", os.O_RDWR)

    end(first)
    second = sidecar()
    os.write(daemon, b"after\n")

    assert second.stdout.readline() == "after\n"
    os.close(daemon)
