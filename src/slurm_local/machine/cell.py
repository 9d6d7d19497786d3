"""One cluster's own namespaces: network, mounts, processes. They end, all together, with their first process.

So whatever a component did inside (devices, routes, firewall rules, mounts, children) needs no list to undo.
Only what lies outside is written down: the first process, the link to this machine, control groups, files.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurm_local.errors import LocalError
from slurm_operator import wire

# Components have fixed paths below these. Inside, each is empty and in memory; outside, nothing is touched.
PRIVATE = ("/run", "/var/lib", "/var/log")

# /proc still shows the machine's process ids when `read` runs: `$pid` is what we see from outside.
# Mounts come in from the machine but never go out; among themselves kubelet and containerd share theirs.
_BOOT = """
set -eu
read -r pid _ < /proc/self/stat
mount --make-rshared /
mount -t proc proc /proc
for private in $1; do mount -t tmpfs -o mode=755 tmpfs "$private"; mount --make-shared "$private"; done
mkdir -p /run/netns /run/lock
ip link set lo up
echo "$pid"
exec "$2" -IS "$3"
"""

# A component joins its control group itself before it becomes the program, so no child can escape it.
_SPAWN = """
log=$1 groups=$2
shift 2
(for group in $groups; do echo 0 > "$group/cgroup.procs"; done; exec "$@") < /dev/null >> "$log" 2>&1 &
echo $!
"""


class Birth(wire.Record):
    """A process for certain: ids are used again, the moment of birth is not."""

    pid: int
    ticks: int


@dataclass(frozen=True)
class Cell:
    """The namespaces of a running cluster."""

    first: Birth

    @property
    def is_alive(self) -> bool:
        return born(self.first.pid) == self.first.ticks

    def enter(self, *argv: str, net: str | None = None) -> list[str]:
        """The command that runs `argv` inside; with `net`, in that network namespace of the cluster."""
        inside = ["nsenter", f"--target={self.first.pid}", "--mount", "--pid", "--net", "--"]
        return [*inside, *([] if net is None else ["nsenter", f"--net=/run/netns/{net}", "--"]), *argv]

    def run(self, *argv: str, net: str | None = None, stdin: str = "") -> str:
        """What a command inside printed. Raises LocalError with what it complained about."""
        done = subprocess.run(
            self.enter(*argv, net=net), input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise LocalError(f"`{' '.join(argv)}` failed in the cluster: {done.stderr.strip()}")
        return done.stdout

    def spawn(
        self, argv: Sequence[str], log: Path, groups: Sequence[Path] = (), net: str | None = None
    ) -> Birth:
        """Starts a program inside that goes on when we end; the process as the cluster counts it."""
        joined = " ".join(map(str, groups))
        inner = [*([] if net is None else ["nsenter", f"--net=/run/netns/{net}", "--"]), *argv]
        done = subprocess.run(
            self.enter("sh", "-c", _SPAWN, "spawn", str(log), joined, *inner),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd="/",
            start_new_session=True,  # Else Ctrl-C at `up` would reach the components.
        )
        pid = int(done.stdout)
        ticks = born(pid, self.proc)
        return Birth(pid=pid, ticks=0 if ticks is None else ticks)

    @property
    def proc(self) -> Path:
        """The cluster's own view of its processes."""
        return self.path("/proc")

    def path(self, inside: str) -> Path:
        """Where this machine sees a file of the cluster's private directories."""
        return Path(f"/proc/{self.first.pid}/root{inside}")

    def has(self, process: Birth) -> bool:
        return self.is_alive and born(process.pid, self.proc) == process.ticks

    def kill(self, process: Birth) -> None:
        """Ends one program inside, at once, and waits until it is gone."""
        if self.has(process):
            subprocess.run(
                self.enter("kill", "-KILL", str(process.pid)), check=False, stderr=subprocess.DEVNULL
            )
        wait_until(lambda: not self._has_left_over(process), f"process {process.pid} to end")

    def _has_left_over(self, process: Birth) -> bool:
        """Whether it was not reaped yet. When its first thread has ended, others may still hold its ports."""
        stat = _stat(process.pid, self.proc)
        return stat is not None and int(stat[19]) == process.ticks

    def resident_bytes(self) -> int:
        """Memory of every process inside; pages that several share count once, as far as the kernel tells."""
        return sum(_proportional_bytes(entry) for entry in self.proc.glob("[0-9]*"))

    def end(self) -> None:
        """Ends everything inside and waits until it is gone."""
        if self.is_alive:
            os.kill(self.first.pid, signal.SIGKILL)
            wait_until(lambda: not self.is_alive, "the cluster's processes to end")


class Newborn:
    """A cell that lives only if somebody says so, after having written down that it exists."""

    def __init__(self, label: str) -> None:
        # `setsid --fork` ends at once, so what it leaves behind is nobody's child and never a zombie of ours.
        command = [
            "setsid",
            "--fork",
            "unshare",
            "--mount",
            "--propagation=slave",
            "--pid",
            "--net",
            "--fork",
        ]
        command += ["sh", "-c", _BOOT]
        init = Path(__file__).with_name("init.py")
        self._process = subprocess.Popen(
            [*command, label, " ".join(PRIVATE), sys.executable, str(init)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        assert self._process.stdout is not None
        first_line = self._process.stdout.readline().strip()
        if not first_line:
            _, why = self._process.communicate()
            raise LocalError(f"Cannot make namespaces for the cluster: {why.strip()}")
        pid = int(first_line)
        ticks = born(pid)
        assert ticks is not None, "it waits for our word, so it lives"
        self.cell = Cell(Birth(pid=pid, ticks=ticks))

    def abandon(self) -> None:
        """Ends it, with everything inside."""
        self._process.communicate()

    def live(self) -> Cell:
        """From now on it outlives us."""
        assert self._process.stdin is not None
        self._process.stdin.write("live\n")
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        return self.cell


def born(pid: int, proc: Path = Path("/proc")) -> int | None:
    """When a process began, in clock ticks since the machine did; None when it is not running."""
    stat = _stat(pid, proc)
    return None if stat is None or stat[0] in "ZX" else int(stat[19])


def _stat(pid: int, proc: Path) -> list[str] | None:
    """What the kernel says of a process, from its state on; None when there is none, not even a dead one."""
    try:
        # The name in parentheses may hold spaces and parentheses itself.
        return (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
        return None


def wait_until(condition: Callable[[], bool], what: str, deadline_s: float = 30) -> None:
    """Comes back when `condition()` is true; gives up with words."""
    give_up = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > give_up:
            raise LocalError(f"Waited {deadline_s:.0f} s for {what}.")
        time.sleep(0.02)


def _proportional_bytes(entry: Path) -> int:
    try:
        for line in (entry / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:  # It ended while we looked, or it is the kernel's.
        pass
    return 0
