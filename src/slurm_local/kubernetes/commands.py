"""The command lines of the control plane. Plain functions: what runs where is decided elsewhere."""

from dataclasses import dataclass
from pathlib import Path

from slurm_local.kubernetes.pki import Authority, Pair, signing_pair

POD_RANGE = "10.244.0.0/16"
SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
DNS_ADDRESS = "10.96.0.10"
_API_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True)
class Ports:
    """Where the control plane listens."""

    api: int = 6443
    etcd: int = 2379
    etcd_peer: int = 2380


class Certificates:
    """All the control plane needs. etcd trusts an authority of its own, so no cluster user reaches it."""

    def __init__(self, directory: Path, addresses: tuple[str, ...]) -> None:
        self.directory = directory
        self.authority = Authority(directory, "ca")
        hosts = (*_API_NAMES, "127.0.0.1", API_SERVICE_ADDRESS, *addresses)
        self.api_server = self.authority.issue("apiserver", "kube-apiserver", hosts=hosts)
        self.admin = self.authority.issue("admin", "admin", groups=["system:masters"])
        self.etcd_authority = Authority(directory, "etcd-ca")
        self.etcd = self.etcd_authority.issue("etcd", "etcd", hosts=["localhost", "127.0.0.1"])
        # API servers behind ours (metrics-server, KEDA's) believe this authority who is asking.
        self.proxy_authority = Authority(directory, "front-proxy-ca")
        self.proxy = self.proxy_authority.issue("front-proxy-client", "front-proxy-client")
        self.tokens = signing_pair(directory, "service-accounts")

    @property
    def ca(self) -> Path:
        return self.authority.pair.certificate

    def client(self, user: str, groups: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> Pair:
        """A certificate for a user or a component."""
        return self.authority.issue(user.replace(":", "-"), user, groups, hosts)


def etcd(program: Path, data: Path, certificates: Certificates, ports: Ports) -> list[str]:
    clients, peers = f"https://127.0.0.1:{ports.etcd}", f"https://127.0.0.1:{ports.etcd_peer}"
    pair, ca = certificates.etcd, certificates.etcd_authority.pair.certificate
    return [
        str(program),
        f"--data-dir={data}",
        "--unsafe-no-fsync",  # What lost power is made again; syncing costs seconds per start.
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        *(f"--{side}cert-file={pair.certificate}" for side in ("", "peer-")),
        *(f"--{side}key-file={pair.key}" for side in ("", "peer-")),
        *(f"--{side}trusted-ca-file={ca}" for side in ("", "peer-")),
        "--client-cert-auth",
        "--peer-client-cert-auth",
        "--log-level=warn",
    ]


def api_server(
    program: Path, certificates: Certificates, ports: Ports, bind: str, advertise: str, extra: list[str]
) -> list[str]:
    pki = certificates
    return [
        str(program),
        f"--bind-address={bind}",
        f"--advertise-address={advertise}",
        f"--secure-port={ports.api}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged",
        "--anonymous-auth=false",
        "--profiling=false",
        f"--client-ca-file={pki.ca}",
        f"--tls-cert-file={pki.api_server.certificate}",
        f"--tls-private-key-file={pki.api_server.key}",
        f"--etcd-servers=https://127.0.0.1:{ports.etcd}",
        f"--etcd-cafile={pki.etcd_authority.pair.certificate}",
        f"--etcd-certfile={pki.etcd.certificate}",
        f"--etcd-keyfile={pki.etcd.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={pki.tokens.key}",
        f"--service-account-key-file={pki.tokens.certificate}",
        f"--kubelet-certificate-authority={pki.ca}",
        f"--kubelet-client-certificate={pki.admin.certificate}",
        f"--kubelet-client-key={pki.admin.key}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={pki.proxy_authority.pair.certificate}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki.proxy.certificate}",
        f"--proxy-client-key-file={pki.proxy.key}",
        *extra,
    ]


def controller_manager(
    program: Path, certificates: Certificates, kubeconfig: Path, *, port: int = 10257
) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--leader-elect=false",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={certificates.tokens.key}",
        f"--root-ca-file={certificates.ca}",
        f"--cluster-signing-cert-file={certificates.ca}",
        f"--cluster-signing-key-file={certificates.authority.pair.key}",
        # At the default rate it takes 4 s to make one service account per controller, and pods wait for that.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def scheduler(program: Path, kubeconfig: Path) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ]
