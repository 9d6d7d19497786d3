"""One daemon in a box: start, stop, kill, freeze, thaw."""

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from slurm_local.errors import LocalError
from slurm_local.machine.cell import wait_until
from testing.boxed.box import Box

_DEADLINE_S = 60.0


class Daemon:
    """A program in a box, found by how it was called: a re-exec on reconfigure may change its process id."""

    def __init__(
        self,
        box: Box,
        argv: Sequence[str],
        *,
        log: Path,
        ready: Callable[[], bool],
        user: tuple[int, int] | None = None,
        env: Mapping[str, str] | None = None,
        confined: bool = False,
    ) -> None:
        self.box = box
        self.argv = list(argv)
        self.name = Path(argv[0]).name
        self.log = log
        self._ready = ready
        self._user = user
        self._env = env
        self._confined = confined
        self._process: subprocess.Popen[bytes] | None = None

    def pids(self) -> list[int]:
        """Its process ids as the box counts them."""
        return [pid for pid, argv in self.box.processes() if Path(argv[0]).name == self.name]

    @property
    def is_running(self) -> bool:
        return bool(self.pids())

    @property
    def has_ended(self) -> bool:
        """It is gone for good; while it restarts itself it does not show for a moment either."""
        return not self.is_running and (self._process is None or self._process.poll() is not None)

    def start(self) -> None:
        """Comes back when it answers."""
        self._forget()
        self._process = self.box.start(
            self.argv, self.log, user=self._user, env=self._env, confined=self._confined
        )
        wait_until(
            self._answers, f"{self.name} on {self.box.hostname} to answer; see {self.log}", _DEADLINE_S
        )

    def stop(self) -> None:
        """Asks it to end, and waits until it has."""
        self.signal(signal.SIGTERM)
        self._wait_gone()

    def kill(self) -> None:
        """Ends it without a chance to say goodbye, as a crash would."""
        self.signal(signal.SIGKILL)
        self._wait_gone()

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freezes it: connections are still taken by the kernel, but nobody answers."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the daemon alone, not to what it started."""
        pids = [str(pid) for pid in self.pids()]
        if pids:
            self.box.run("kill", f"-{number.value}", *pids, check=False)

    def close(self) -> None:
        """For a box that has ended: nothing is left to signal."""
        self._forget()

    def last_words(self, lines: int = 20) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) or "it said nothing"

    def _wait_gone(self) -> None:
        # A frozen process does not see a signal before it is thawed.
        self.signal(signal.SIGCONT)
        wait_until(
            lambda: not self.is_running,
            f"{self.name} on {self.box.hostname} to end; see {self.log}",
            _DEADLINE_S,
        )
        self._forget()

    def _answers(self) -> bool:
        if self._process is not None and self.has_ended:
            raise LocalError(f"{self.name} on {self.box.hostname} ended:\n{self.last_words()}")
        return self._ready()

    def _forget(self) -> None:
        # nsenter freezes with its child and is not thawed with it.
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            try:
                self._process.wait(_DEADLINE_S)
            except subprocess.TimeoutExpired as late:
                raise LocalError(f"{self.name} on {self.box.hostname} does not end; see {self.log}") from late
            self._process = None
