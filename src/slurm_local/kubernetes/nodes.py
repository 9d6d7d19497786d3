"""One Kubernetes node: containerd, kubelet, kube-proxy with files, addresses, certificates of its own."""

from dataclasses import dataclass
from pathlib import Path

import yaml

from slurm_local.kubernetes import containerd
from slurm_local.kubernetes.commands import DNS_ADDRESS, POD_RANGE, Certificates
from slurm_local.kubernetes.kubeconfig import write_kubeconfig
from slurm_local.machine import cgroups
from slurm_local.machine.network import NodeNetwork
from slurm_operator import wire

_GENEROUS = {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"}
_GENEROUS |= {"nodefs.inodesFree": "1%", "imagefs.inodesFree": "1%"}


@dataclass(frozen=True)
class NodeFiles:
    """Where one node keeps what it has."""

    cluster: str
    network: NodeNetwork
    directory: Path

    @property
    def name(self) -> str:
        return self.network.name

    @property
    def containerd_root(self) -> Path:
        return self.directory / "containerd"

    @property
    def socket(self) -> str:
        """containerd's socket, as the cluster sees it."""
        return f"/run/{self.name}/containerd.sock"

    @property
    def kubelet_root(self) -> str:
        """The kubelet's directory, as the cluster sees it: a short path, because sockets lie below it."""
        return f"/var/lib/{self.name}"

    @property
    def cgroup(self) -> str:
        """Its own: a kubelet ends pods that it does not know when it finds them under its group."""
        return cgroups.path_of(self.cluster, self.name)

    def write(self, certificates: Certificates, url: str) -> None:
        """Every configuration file of the node."""
        networks = self.directory / "networks"
        networks.mkdir(parents=True, exist_ok=True)
        (networks / "10-pods.conflist").write_bytes(wire.encode(self._pod_network()))
        (self.directory / "containerd.toml").write_text(
            containerd.config(self.containerd_root, f"/run/{self.name}/state", self.socket, networks)
        )
        self._write_kubelet(certificates, url)
        self._write_proxy(certificates, url)

    def containerd(self, programs: Path) -> list[str]:
        return containerd.command(programs, self.directory / "containerd.toml")

    def kubelet(self, programs: Path) -> list[str]:
        return [
            str(programs / "kubelet"),
            f"--config={self.directory / 'kubelet.yaml'}",
            f"--kubeconfig={self.directory / 'kubelet.kubeconfig'}",
            f"--root-dir={self.kubelet_root}",
            f"--cert-dir={self.kubelet_root}/pki",
            f"--hostname-override={self.name}",
            f"--node-ip={self.network.address}",
            f"--node-labels=kubernetes.io/hostname={self.name}",
        ]

    def proxy(self, programs: Path) -> list[str]:
        return [str(programs / "kube-proxy"), f"--config={self.directory / 'proxy.yaml'}"]

    def _pod_network(self) -> dict[str, object]:
        ranges: dict[str, object] = {"type": "host-local", "ranges": [[{"subnet": self.network.pods}]]}
        ranges |= {"routes": [{"dst": "0.0.0.0/0"}], "dataDir": f"/run/{self.name}/addresses"}
        bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True, "ipMasq": False}
        ports = {"type": "portmap", "capabilities": {"portMappings": True}}
        return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge | {"ipam": ranges}, ports]}

    def _write_kubelet(self, certificates: Certificates, url: str) -> None:
        pair = certificates.client(
            f"system:node:{self.name}", ("system:nodes",), (self.network.address, self.name)
        )
        write_kubeconfig(self.directory / "kubelet.kubeconfig", url, certificates.ca, pair)
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.network.address,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(certificates.ca)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(pair.certificate),
            "tlsPrivateKeyFile": str(pair.key),
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.cgroup,
            "failCgroupV1": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "clusterDomain": "cluster.local",
            "clusterDNS": [DNS_ADDRESS],
            "resolvConf": "",  # This machine's name servers cannot be reached from inside.
            "podLogsDir": str(self.directory / "pod-logs"),
            "volumePluginDir": str(self.directory / "volume-plugins"),
            "makeIPTablesUtilChains": False,
            "maxPods": 250,
            "evictionHard": _GENEROUS,
            # Nobody could pull a local image again.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
        }
        (self.directory / "kubelet.yaml").write_text(yaml.safe_dump(config, sort_keys=False))

    def _write_proxy(self, certificates: Certificates, url: str) -> None:
        pair = certificates.client("system:kube-proxy")
        kubeconfig = write_kubeconfig(self.directory / "proxy.kubeconfig", url, certificates.ca, pair)
        config = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "hostnameOverride": self.name,
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "clusterCIDR": POD_RANGE,
            "conntrack": {"maxPerCore": 0, "min": 0},  # The limits belong to the whole machine.
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
        }
        (self.directory / "proxy.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
