"""The virtual machine: boots, runs commands, and ends with the process that made it."""

import base64
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from slurm_local.errors import LocalError
from slurm_local.machine.processes import last_lines
from testing.guest.initrd import kernel_of, write_initrd

# Answers one command after the other: each is a line of base64, and so is what it printed, after its exit code.
AGENT = """\
port=$(grep --files-with-matches commands /sys/class/virtio-ports/*/name)
port=${port%/name}
exec 3<> "/dev/${port##*/}"
while read -r command <&3; do
  echo "$command" | base64 -d > /run/command
  sh /run/command > /run/output 2>&1 < /dev/null
  echo "$? $(base64 -w0 /run/output)" >&3
done
"""

_BOOT_SECONDS = 240

# Mounts of its own, over the root that all tests share: nothing is written there.
_ENTER = """
set -eu
root=$1 work=$2; shift 2
mount --bind "$work" "$root/mnt"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
cd /
exec chroot "$root" "$@"
"""


@dataclass(frozen=True)
class Done:
    code: int
    output: str


class Machine:
    """Two CPUs and 3 GiB, with these disks; what is written to them is gone with the machine."""

    def __init__(self, qemu: Path, work: Path, disks: Sequence[Path]) -> None:
        self.console = work / "console.log"
        self._disks = disks
        write_initrd(qemu, work / "initrd")
        for number, disk in enumerate(disks):
            _link(disk, work / f"disk-{number}")
        self._log = work / "qemu.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "unshare",
                    "--mount",
                    "--fork",
                    "--kill-child",
                    "sh",
                    "-c",
                    _ENTER,
                    "qemu",
                    str(qemu),
                    str(work),
                    *self._command(kernel_of(qemu).relative_to(qemu)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._channel = socket.socket(socket.AF_UNIX)
        try:
            self._connect(work / "commands")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def run(self, command: str, *, timeout_s: float = 240, check: bool = True) -> str:
        """What a shell command in the machine prints, errors among it."""
        done = self.tried(command, timeout_s=timeout_s)
        if check and done.code != 0:
            raise LocalError(f"{command!r} in the machine failed ({done.code}): {done.output}")
        return done.output

    def tried(self, command: str, *, timeout_s: float = 240) -> Done:
        self._channel.settimeout(timeout_s)
        self._channel.sendall(base64.b64encode(command.encode()) + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            try:
                received = self._channel.recv(1 << 16)
            except TimeoutError:
                raise LocalError(f"{command!r} in the machine took longer than {timeout_s} s") from None
            except ConnectionResetError:
                received = b""
            if not received:
                raise LocalError(f"The machine ended:\n{last_lines(self.console)}")
            answer += received
        code, _, output = answer.decode().partition(" ")
        return Done(int(code), base64.b64decode(output).decode(errors="replace"))

    def write(self, path: str, text: str) -> None:
        self.run(f"base64 -d > {path} <<'END'\n{base64.b64encode(text.encode()).decode()}\nEND\n")

    def wait_for(self, condition: Callable[[], bool], what: str, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise LocalError(f"{what} did not happen within {seconds} s")
            time.sleep(0.5)

    def _command(self, kernel: Path) -> list[str]:
        drives = [
            ["-drive", f"file=/mnt/disk-{number},if=virtio,format=raw,snapshot=on"]
            for number, _ in enumerate(self._disks)
        ]
        return [
            *("qemu-system-x86_64", "-M", "q35", "-cpu", "max", "-smp", "2", "-m", "3G"),
            # Never by the kernel's help (KVM), which may be there and then fail: seen in a virtual machine.
            *("-accel", "tcg,thread=multi"),
            *("-kernel", f"/{kernel}", "-initrd", "/mnt/initrd"),
            *(
                "-append",
                "console=ttyS0 cgroup_no_v1=all panic=-1 quiet no_timer_check systemd.show_status=no systemd.mask=serial-getty@ttyS0.service",
            ),
            *("-display", "none", "-monitor", "none", "-serial", "file:/mnt/console.log", "-no-reboot"),
            *("-nic", "none"),
            *[word for drive in drives for word in drive],
            *("-device", "virtio-serial", "-device", "virtserialport,chardev=commands,name=commands"),
            *("-chardev", "socket,id=commands,path=/mnt/commands,server=on,wait=off"),
        ]

    def _connect(self, path: Path) -> None:
        self.wait_for(lambda: path.exists() or self._has_ended(), "QEMU's channel", 30)
        if self._has_ended():
            raise LocalError(f"QEMU ended:\n{last_lines(self._log)}")
        self._channel.connect(str(path))
        try:
            # What is sent before the agent listens waits in the channel.
            self.run("true", timeout_s=_BOOT_SECONDS)
        except LocalError as error:
            raise LocalError(f"{error}\n{last_lines(self.console)}") from error

    def _has_ended(self) -> bool:
        return self._process.poll() is not None


def _link(disk: Path, name: Path) -> None:
    """A second name where QEMU finds it; a copy on another file system."""
    try:
        name.hardlink_to(disk)
    except OSError:
        shutil.copyfile(disk, name)


def disk(directory: Path, image: Path) -> Path:
    """A file system image with the files of a directory, and a GiB to spare; only written to by the machine."""
    used = subprocess.run(["du", "-sm", str(directory)], capture_output=True, text=True, check=True)
    megabytes = int(used.stdout.split()[0]) * 5 // 4 + 1024
    command = [
        "mke2fs",
        "-q",
        "-t",
        "ext4",
        "-O",
        "^has_journal",
        "-d",
        str(directory),
        str(image),
        f"{megabytes}M",
    ]
    image.unlink(missing_ok=True)
    subprocess.run(
        ["env", "PATH=/usr/sbin:/sbin:/usr/bin:/bin", *command], stdout=subprocess.DEVNULL, check=True
    )
    return image
