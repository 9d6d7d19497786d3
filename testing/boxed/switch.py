"""The network between boxes: a bridge in one of them, and one link to the machine."""

import subprocess

from slurm_local.errors import LocalError
from testing.boxed.box import Box

# The range set aside for testing network devices: no real host has such an address.
_NETWORKS = [f"198.18.{number}" for number in range(256)]


class Switch:
    """Boxes plugged in here reach each other, and the machine reaches them; nothing leads further."""

    def __init__(self, home: Box) -> None:
        self._home = home
        self._last_address = 9
        # An address of its own: else it takes that of a port, and the machine talks to one that has gone.
        _in(home, "link", "add", "bridge0", "address", "02:00:00:00:00:01", "type", "bridge")
        _in(home, "link", "set", "bridge0", "up")
        self._network = self._link_to_machine()
        self.address = f"{self._network}.2"
        _in(home, "address", "add", f"{self.address}/24", "dev", "bridge0")

    def plug_in(self, box: Box) -> str:
        """Gives the box its network and says its address, which no box had before."""
        self._last_address += 1
        address = f"{self._network}.{self._last_address}"
        port = f"port{self._last_address}"
        inside = ["peer", "name", "eth0", "netns", str(box.pid)]
        _in(self._home, "link", "add", port, "type", "veth", *inside)
        _in(self._home, "link", "set", port, "master", "bridge0", "up")
        _in(box, "address", "add", f"{address}/24", "dev", "eth0")
        _in(box, "link", "set", "eth0", "up")
        return address

    def _link_to_machine(self) -> str:
        """Takes the first network that no other switch of this machine has; it ends with the home box."""
        for number, network in enumerate(_NETWORKS):
            name = f"slurm-boxes{number}"
            inside = ["peer", "name", "machine", "netns", str(self._home.pid)]
            if _ip("link", "add", name, "type", "veth", *inside).returncode != 0:
                continue
            _checked(_ip("address", "add", f"{network}.1/24", "dev", name))
            _checked(_ip("link", "set", name, "up"))
            _in(self._home, "link", "set", "machine", "master", "bridge0", "up")
            return network
        raise LocalError(
            "Cannot make a network link for the boxes; this needs root, and `ip link add` must work."
        )


def _in(box: Box, *arguments: str) -> None:
    # In the box's network, but with the machine's eyes: `netns` takes a process id as the machine counts it.
    _checked(_ip(*arguments, before=("nsenter", f"--target={box.pid}", "--net")))


def _ip(*arguments: str, before: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*before, "ip", *arguments], capture_output=True, text=True, check=False)


def _checked(done: "subprocess.CompletedProcess[str]") -> None:
    if done.returncode != 0:
        raise LocalError(f"{' '.join(done.args)}: {done.stderr.strip()}")
