"""The light API server as a control plane for the bench: the operator is real, and so is HTTPS to it."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from bench import workers
from bench.rig import MACHINES, Rig, watching
from bench.rows import Row
from slurm_local.kubernetes.commands import Certificates
from slurm_local.kubernetes.kubeconfig import write_kubeconfig

PODS_A_SECOND = 200.0


def measure() -> list[Row]:
    """Workers by the thousand, as in `workers`, with an API server and machines that cost next to nothing."""
    return workers.measure_on(light_rig, "light")


class LightPlane:
    """What the bench asks of a control plane."""

    def __init__(self, directory: Path, url: str, certificates: Certificates) -> None:
        self.directory, self.url, self.certificates = directory, url, certificates
        self.audit_log = directory / "audit.log"
        self.kubeconfig = self.kubeconfig_for("admin")

    def kubeconfig_for(self, user: str, *groups: str) -> Path:
        pair = self.certificates.client(user, groups)
        path = self.directory / f"kubeconfig-{user}"
        return write_kubeconfig(path, self.url, self.certificates.ca, pair)


@contextmanager
def plane(directory: Path, pods_a_second: float = PODS_A_SECOND) -> Iterator[LightPlane]:
    """A server that ends with the block."""
    directory.mkdir(parents=True, exist_ok=True)
    pki = Certificates(directory / "pki", addresses=())
    files = (pki.ca, pki.api_server.certificate, pki.api_server.key, directory / "audit.log")
    argv = [sys.executable, "-m", "bench.light_server", *map(str, files), str(pods_a_second)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield LightPlane(directory, f"https://127.0.0.1:{port}", pki)
        finally:
            process.terminate()


@asynccontextmanager
async def light_rig(directory: Path, machines: int = MACHINES) -> AsyncIterator[Rig]:
    """Everything but the operator."""
    with plane(directory) as light:
        async with AsyncExitStack() as stack:
            yield await watching(light, stack, machines)
