"""Programs that run until they are stopped, with a log each."""

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from slurm_local.errors import LocalError
from slurm_local.machine.processes import last_lines

POLL_S = 0.05


class Process:
    """A program of this machine that ends with the program that started it, however that one ends."""

    def __init__(self, name: str, argv: Sequence[str], log: Path) -> None:
        self.name, self.argv, self.log = name, list(argv), log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                # Without this a killed test run would leave API servers behind.
                ["setpriv", "--pdeathsig", "KILL", "--", *self.argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} has not been started"
        return self._process.pid

    def stop(self) -> None:
        """Ends it at once. The API server would otherwise hold its port for half a minute."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Freezes it: it keeps its connections and answers nobody."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def wait_ready(self, is_ready: Callable[[], bool], deadline_s: float = 60) -> None:
        """Comes back when `is_ready` says so; names the program and its last lines when it ends instead."""
        give_up = time.monotonic() + deadline_s
        while not is_ready():
            if not self.is_alive:
                raise LocalError(f"{self.name} ended. The last lines of {self.log}:\n{last_lines(self.log)}")
            if time.monotonic() > give_up:
                raise LocalError(
                    f"{self.name} is not ready after {deadline_s:.0f} s. "
                    f"The last lines of {self.log}:\n{last_lines(self.log)}"
                )
            time.sleep(POLL_S)
