"""Runs a Slurm daemon as systemd would, and stays with it through reconfigures.

Told to reconfigure, a daemon under systemd starts its successor, waits until that one works, names it to
systemd and ends; if the successor fails, the old one goes on. In the foreground (-D) it replaces itself
instead, and a configuration that it cannot read ends it (both seen with 26.05). So we play systemd: listen
for the name of the main process, pass signals on to it, reap what it leaves behind, and end when it ends.
"""

import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

_PR_SET_CHILD_SUBREAPER = 36
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Main:
    """The process that is the daemon right now."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # It has ended; we are about to notice.
            os.kill(self.pid, number)


def follow(argv: Sequence[str], beside: Callable[[Main], None] | None = None) -> int:
    """The exit code of the daemon, or of its last successor. `beside` runs in a thread meanwhile."""
    # Successors become our children when the process that made them ends.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(dir=_writable()) as directory, _notices(Path(directory)) as notices:
        environment = os.environ | {"NOTIFY_SOCKET": notices.getsockname()}
        main = Main(subprocess.Popen(argv, env=environment).pid)
        for number in _PASSED_ON:
            signal.signal(number, _passing_on(main))
        threading.Thread(target=_listen, args=(notices, main), daemon=True).start()
        if beside is not None:
            threading.Thread(target=beside, args=(main,), daemon=True).start()
        return _wait(main)


def named_main(notice: str) -> int | None:
    """The process that a notice names as the main one."""
    for line in notice.splitlines():
        name, _, value = line.partition("=")
        if name == "MAINPID" and value.isdigit():
            return int(value)
    return None


def _wait(main: Main) -> int:
    while True:
        ended, status = os.wait()
        if ended == main.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _listen(notices: socket.socket, main: Main) -> None:
    # A daemon sends its successor's name and then a descriptor, and waits until that is closed before it
    # ends; receiving without room for descriptors closes it. So we know the name before the old one is gone.
    while True:
        main.pid = named_main(notices.recv(4096).decode(errors="replace")) or main.pid


def _notices(directory: Path) -> socket.socket:
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(directory / "notify"))
    return notices


def _passing_on(main: Main) -> Callable[[int, FrameType | None], None]:
    return lambda number, _frame: main.signal(number)


def _writable() -> str | None:
    """/run where we may write, else the usual temporary directory: a container's root may be read-only."""
    return "/run" if os.access("/run", os.W_OK) else None
