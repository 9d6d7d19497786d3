"""The networks of one cluster: a link to this machine, a wire between nodes, a bridge for each node's pods.

There is no default route anywhere: packets for addresses outside the cluster have nowhere to go. The link is
for the API server and its clients alone: what pods send there would make this machine answer to the outside.
"""

import subprocess
from dataclasses import dataclass

from slurm_local.errors import LocalError
from slurm_local.kubernetes.commands import SERVICE_RANGE
from slurm_local.machine.cell import Cell
from slurm_operator import wire

# Half of the range set aside for benchmarks between network devices: no real host has such an address.
_LINKS = 256
_NO_TRANSIT = """
table inet link {
    chain transit {
        type filter hook forward priority filter; policy accept;
        iifname "uplink" drop
        oifname "uplink" drop
    }
}
"""
# The second makes answers between pods of one bridge pass the rules that put the service's address back.
_FORWARDING = ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables")


@dataclass(frozen=True)
class Link:
    """The wire between this machine and one cluster."""

    number: int

    @property
    def device(self) -> str:
        return f"slurm{self.number}"

    @property
    def here(self) -> str:
        return f"198.19.{self.number}.1"

    @property
    def there(self) -> str:
        return f"198.19.{self.number}.2"


@dataclass(frozen=True)
class NodeNetwork:
    """Addresses of one node; numbers count from 1. The first node lives in the cluster's own namespace."""

    number: int

    @property
    def name(self) -> str:
        return f"node-{self.number}"

    @property
    def address(self) -> str:
        return f"172.30.0.{self.number}"

    @property
    def pods(self) -> str:
        return f"10.244.{self.number}.0/24"

    @property
    def gateway(self) -> str:
        return f"10.244.{self.number}.1"

    @property
    def namespace(self) -> str | None:
        return None if self.number == 1 else self.name


class _Address(wire.Record):
    ifname: str
    addr_info: list[dict[str, object]] = []


def free_link() -> Link:
    """A link whose device and addresses nobody on this machine has."""
    shown = subprocess.run(["ip", "-json", "address"], capture_output=True, check=True).stdout
    devices = wire.decode(shown, list[_Address])
    names = {device.ifname for device in devices}
    addresses = {str(info.get("local")) for device in devices for info in device.addr_info}
    for number in range(_LINKS):
        link = Link(number)
        if link.device not in names and link.here not in addresses:
            return link
    raise LocalError(f"All {_LINKS} links between this machine and clusters are in use.")


def connect(cell: Cell, link: Link, name: str) -> None:
    """Lays the wire to this machine, and the bridge that the nodes are plugged into."""
    peer = ["peer", "name", "uplink", "netns", str(cell.first.pid)]
    _here("ip", "link", "add", link.device, "type", "veth", *peer)
    _here("ip", "address", "add", f"{link.here}/30", "dev", link.device)
    _here("ip", "link", "set", link.device, "alias", f"slurm-operator cluster {name}", "up")
    first = NodeNetwork(1)
    _batch(
        cell,
        None,
        f"address add {link.there}/30 dev uplink",
        "link set uplink up",
        "link add nodes type bridge",
        f"address add {first.address}/24 dev nodes",
        "link set nodes up",
    )
    cell.run("nft", "-f", "-", stdin=_NO_TRANSIT)


def add_node(cell: Cell, node: NodeNetwork, others: list[NodeNetwork]) -> None:
    """Gives a node its address, its pods a bridge, and routes between its pods and those of the others."""
    if node.namespace is not None:
        cell.run("ip", "netns", "add", node.namespace)
        _batch(
            cell,
            None,
            f"link add to-{node.name} type veth peer name nodes netns {node.namespace}",
            f"link set to-{node.name} master nodes up",
        )
        _batch(
            cell,
            node.namespace,
            "link set lo up",
            f"address add {node.address}/24 dev nodes",
            "link set nodes up",
        )
    _forward(cell, node.namespace)
    _batch(
        cell,
        node.namespace,
        "link add pods type bridge",
        f"address add {node.gateway}/24 dev pods",
        "link set pods up",
        # A service nobody has programmed yet: the packet ends at the pods' bridge.
        f"route add {SERVICE_RANGE} dev pods",
        *(f"route add {other.pods} via {other.address}" for other in others),
    )
    for other in others:
        _batch(cell, other.namespace, f"route add {node.pods} via {node.address}")


def _forward(cell: Cell, namespace: str | None) -> None:
    settings = "; ".join(f"echo 1 > /proc/sys/{setting}" for setting in _FORWARDING)
    cell.run("sh", "-ec", settings, net=namespace)


def _batch(cell: Cell, namespace: str | None, *lines: str) -> None:
    cell.run("ip", "-batch", "-", net=namespace, stdin="\n".join(lines) + "\n")


def _here(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
