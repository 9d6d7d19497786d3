"""A container without an engine: own mounts, processes, network and host name over a shared, untouched root.

The tests of real Slurm daemons run in boxes. Each one ends with the process that made it, however that ends:
its first process reads from a pipe we hold, and when that process is gone the kernel ends all others in the
box and takes its mounts and network along. Nothing has to be cleaned up.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from slurm_local.errors import LocalError

_NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--ipc")

# Runs in the new namespaces but still on the machine's own files, so /proc/self says which process the
# machine sees. It says so only when the box's root is its root: before that, `Box.path` would lead to the
# machine's own files. Changes go to memory: a database syncs in no time, and nothing is left on the disk.
_BOOT = """
set -eu
rootfs=$1 work=$2 name=$3
read -r pid _ < /proc/self/stat
mount -t tmpfs -o mode=755 tmpfs "$work"
mkdir "$work/changes" "$work/scratch" "$work/root"
mount -t overlay overlay -o "lowerdir=$rootfs,upperdir=$work/changes,workdir=$work/scratch" "$work/root"
cd "$work/root"
mount --rbind /dev dev
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
hostname "$name"
echo "$name" > etc/hostname
echo "127.0.0.1 localhost" > etc/hosts
: > etc/resolv.conf
chroot . ip link set lo up
exec chroot . sh -c 'echo "$1"; exec tini -- sh -c "exec cat > /dev/null"' box "$pid"
"""


class Box:
    """One box, running from the moment it is made until `close`."""

    def __init__(self, rootfs: Path, work: Path, hostname: str) -> None:
        work.mkdir(parents=True, exist_ok=True)
        self.hostname = hostname
        self._process = subprocess.Popen(
            [
                "unshare",
                *_NAMESPACES,
                "--fork",
                "--kill-child",
                "sh",
                "-c",
                _BOOT,
                "box",
                rootfs,
                work,
                hostname,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        first_line = self._process.stdout.readline().strip()
        if not first_line:
            _, why = self._process.communicate()
            raise LocalError(f"Cannot make the box {hostname!r}: {why.strip() or 'it ended without a word'}")
        self.pid = int(first_line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every process in the box; its files are gone too."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def path(self, inside: str) -> Path:
        """Where the machine sees a file of the box; for files and directories, not for links."""
        return Path(f"/proc/{self.pid}/root") / inside.lstrip("/")

    def append(self, inside: str, line: str) -> None:
        with self.path(inside).open("a") as file:
            file.write(f"{line}\n")

    def write_secret(self, inside: str, content: bytes, owner: tuple[int, int]) -> None:
        """A file that only its owner reads, as daemons ask of their keys."""
        path = self.path(inside)
        path.touch(mode=0o600)
        path.write_bytes(content)
        os.chown(path, *owner)

    def processes(self) -> Iterator[tuple[int, list[str]]]:
        """Process ids as the box counts them, with what each was called with."""
        for directory in self.path("/proc").glob("[0-9]*"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # It has just ended.
                if command := (directory / "cmdline").read_bytes():
                    yield int(directory.name), command.decode(errors="replace").split("\0")

    def entering(
        self,
        argv: Sequence[str],
        *,
        user: tuple[int, int] | None = None,
        env: Mapping[str, str] | None = None,
        confined: bool = False,
    ) -> list[str]:
        """The command that runs `argv` in the box, as root or as a user, with nothing of our environment.

        A `confined` one has no capability and gains none, as containers of daemons in pods.
        """
        into = [
            "nsenter",
            f"--target={self.pid}",
            "--mount",
            "--pid",
            "--net",
            "--uts",
            "--ipc",
            "--root",
            "--wd",
        ]
        identity = (
            [] if user is None else ["setpriv", f"--reuid={user[0]}", f"--regid={user[1]}", "--clear-groups"]
        )
        if user is not None and confined:
            identity += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
        variables = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C.UTF-8",
        }
        settings = [f"{name}={value}" for name, value in {**variables, **(env or {})}.items()]
        return [*into, "env", "--ignore-environment", *settings, *identity, *argv]

    def run(
        self,
        *argv: str,
        user: tuple[int, int] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout_s: float = 60,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end; a failure says what the command said."""
        command = self.entering(argv, user=user, env=env)
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        if check and done.returncode != 0:
            said = "\n".join(filter(None, [done.stdout.strip(), done.stderr.strip()]))
            raise LocalError(f"{' '.join(argv)!r} on {self.hostname} failed ({done.returncode}): {said}")
        return done

    def start(
        self,
        argv: Sequence[str],
        log: Path,
        *,
        user: tuple[int, int] | None = None,
        env: Mapping[str, str] | None = None,
        confined: bool = False,
    ) -> "subprocess.Popen[bytes]":
        """Starts a command that goes on; what it says is added to `log`."""
        with log.open("ab") as output:
            return subprocess.Popen(
                self.entering(argv, user=user, env=env, confined=confined),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )


def box_in(directory: Path, rootfs: Path, hostname: str) -> Box:
    """A box whose files lie below `directory`, beside those of others."""
    directory.mkdir(parents=True, exist_ok=True)
    return Box(rootfs, Path(tempfile.mkdtemp(prefix=f"{hostname}-", dir=directory)), hostname)
