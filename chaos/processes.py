"""Processes of one cluster, as this machine sees them, and the network that each of them lives in."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from chaos.impact import Missed
from slurm_local.errors import LocalError
from slurm_local.machine import cgroups

# In place of a program's name: the operator under test, found by words of its command line, and what writes
# Slurm's files into a shared root, which is the same program.
OPERATOR = "operator"
WRITER = "sconfigcontroller"


class Processes:
    def __init__(self, cluster: str, operator: str) -> None:
        # Every hierarchy holds the same processes.
        self._group = cgroups.hierarchies()[0] / cgroups.path_of(cluster).strip("/")
        self._words = {OPERATOR: operator, WRITER: f" {WRITER} "}
        self._slurmctld = 0

    def of(self, program: str) -> list[int]:
        """Those whose program has this name. Missed when there is none."""
        found = [pid for pid in self._all() if self._is(program, _command(pid))]
        if not found:
            raise Missed(f"no {program} runs")
        return sorted(found)

    def slurmctld(self) -> int:
        """The one that was found last, while it lives: it is asked for twice a second."""
        if not self._is("slurmctld", _command(self._slurmctld)):
            self._slurmctld = self.of("slurmctld")[0]
        return self._slurmctld

    def _all(self) -> Iterator[int]:
        """Groups come and go meanwhile."""
        for directory, _, _ in os.walk(self._group):
            with suppress(OSError):
                yield from map(int, Path(directory, "cgroup.procs").read_text().split())

    def _is(self, program: str, command: Sequence[str]) -> bool:
        if program in self._words:
            return self._words[program] in f"{' '.join(command)} "
        return bool(command) and Path(command[0]).name == program

    def signal(self, program: str, number: signal.Signals) -> None:
        for pid in self.of(program):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def slurmd_of(self, worker: str) -> int:
        for pid in self.of("slurmd"):
            with suppress(OSError):
                if (files_of(pid) / "etc/hostname").read_text().strip() == worker:
                    return pid
        raise Missed(f"no slurmd in {worker}")


def files_of(pid: int) -> Path:
    """The file system as this process sees it."""
    return Path("/proc", str(pid), "root")


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:  # It has ended.
        return []


def is_alive(pid: int) -> bool:
    """Whether it still runs; one that has ended has no command line."""
    return any(_command(pid))


def maps(pid: int) -> str:
    """The files that a process has mapped; nothing when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/maps").read_text()
    return ""


def in_network_of(pid: int, *argv: str) -> list[str]:
    """The command that runs `argv` in the network of a process, with this machine's files."""
    return ["nsenter", f"--target={pid}", "--net", "--", *argv]


def in_container_of(pid: int, *argv: str, timeout_s: float = 8) -> str:
    """What a command prints beside a process of a pod, as its user. Needs no API server."""
    user = Path(f"/proc/{pid}").stat()
    inside = ["nsenter", f"--target={pid}", "--mount", "--uts", "--ipc", "--net", "--pid"]
    identity = [f"--setuid={user.st_uid}", f"--setgid={user.st_gid}"]
    limited = ["timeout", "--foreground", str(timeout_s), *argv]
    return _printed([*inside, *identity, "--", "env", "-i", "PATH=/usr/bin:/bin", *limited])


def address_of(pid: int) -> str:
    """The address of the pod that a process is in."""
    shown = _printed(in_network_of(pid, "ip", "-4", "-oneline", "address", "show", "dev", "eth0"))
    return shown.split("inet ")[1].split("/")[0]


def network_of(pid: int) -> int:
    """A descriptor of the network that a process lives in, which others in its pod may outlive it in."""
    try:
        return os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as gone:
        raise Missed(f"process {pid} has ended") from gone


def nft(network: int, rules: str) -> None:
    """Loads firewall rules there."""
    _printed(["nsenter", f"--net=/proc/{os.getpid()}/fd/{network}", "--", "nft", "-f", "-"], rules)


def _printed(command: Sequence[str], stdin: str = "") -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalError(f"`{' '.join(command[-3:])}`: {done.stderr.strip()}")
    return done.stdout
