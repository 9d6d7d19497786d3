"""The machine below: which boot it is in, and the command that ends it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from slurm_operator.printable import cut, printable

# In the namespaces of process 1: the pod shares the processes of the Kubernetes node.
REBOOT_COMMAND: Final = "nsenter --target 1 --mount --uts --ipc --net --pid -- systemctl reboot"

_COMMAND_SECONDS: Final = 60.0
_MOST_OUTPUT: Final = 300


@dataclass(frozen=True)
class Host:
    """Read each time that it is asked for: nothing of it may be from an earlier boot."""

    proc: Path = Path("/proc")
    command: Sequence[str] = ()

    def boot_id(self) -> str:
        return (self.proc / "sys/kernel/random/boot_id").read_text().strip()

    def booted_at(self) -> datetime:
        """By this machine's clock."""
        lines = (self.proc / "stat").read_text().splitlines()
        [seconds] = [line.split()[1] for line in lines if line.startswith("btime ")]
        return datetime.fromtimestamp(int(seconds), UTC)

    async def reboot(self) -> str:
        """What went wrong; empty when the command ended well, or not before its time was over."""
        words = " ".join(self.command)
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
            )
        except OSError as error:
            return f"`{words}` cannot be run: {error.strerror or error}."
        try:
            async with asyncio.timeout(_COMMAND_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            return ""  # A machine that goes down may stop what asked for it.
        if process.returncode == 0:
            return ""
        said = cut(printable(output.decode(errors="replace").strip()), _MOST_OUTPUT)
        return f"`{words}` ended with {process.returncode}{f': {said}' if said else ''}."
