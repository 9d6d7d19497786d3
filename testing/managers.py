"""`slurm-operator manager` as a process of its own, against a real API server."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass
class ManagerProcess:
    process: subprocess.Popen[bytes]
    health: int
    metrics: int
    log: Path

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = 30) -> int:
        return self.process.wait(seconds)

    def get(self, path: str, port: int | None = None) -> tuple[int, str]:
        url = f"http://127.0.0.1:{port or self.health}{path}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    @property
    def is_ready(self) -> bool:
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False

    def wait_ready(self) -> "ManagerProcess":
        until(lambda: self.is_ready or self.process.poll() is not None, what=f"manager ready; see {self.log}")
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        return self


@contextmanager
def running_manager(
    kubeconfig: Path, log: Path, *flags: str, env: dict[str, str] | None = None, name: str = "manager"
) -> Iterator[ManagerProcess]:
    """A manager with health and metrics on free ports of loopback; killed at the end, if it still runs.

    Called `soperator` it is the one that takes the place of Soperator's.
    """
    health, metrics = free_port(), free_port()
    places = (
        ("health-addr", "metrics-addr")
        if name == "manager"
        else ("health-probe-bind-address", "metrics-bind-address")
    )
    alone = ["--leader-elect=false"] if name == "manager" else []  # A flag that comes later wins.
    command = [
        sys.executable, "-m", "slurm_operator.cli", name, "--kubeconfig", str(kubeconfig),
        f"--{places[0]}=127.0.0.1:{health}", f"--{places[1]}=127.0.0.1:{metrics}", *alone, *flags,
    ]  # fmt: skip
    with log.open("ab") as out:
        process = subprocess.Popen(command, stderr=out, stdout=out, env={**os.environ, **(env or {})})
    try:
        yield ManagerProcess(process, health, metrics, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


def until(condition: Callable[[], object], *, seconds: float = 60, what: str = "it") -> None:
    """Wait for a condition; how long it takes is not what is tested.

    Most looks are processes of kubectl, so it rests four times as long as a look took: who waits leaves the
    machine to those it waits for.
    """
    end = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if condition():
            return
        looked = time.monotonic()
        assert looked < end, f"waited {seconds:.0f} s for {what}"
        time.sleep(min(max(0.05, 4 * (looked - began)), 0.5))
