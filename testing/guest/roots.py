"""What the virtual machine is made of: QEMU and a kernel, and the system that the kernel starts."""

from pathlib import Path

from slurm_local.image.debian import DebianRoot, unpacked
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress

QEMU_ROOT = DebianRoot(
    name="virtual-machine",
    minutes="about a minute, once",
    packages=("qemu-system-x86", "linux-image-cloud-amd64", "busybox-static", "e2fsprogs"),
)

# As small as an operating system of a Kubernetes node can be that has systemd.
NODE_ROOT = DebianRoot(
    name="kube-node",
    minutes="about a minute, once",
    packages=("systemd", "dbus", "runc", "iproute2", "procps", "kmod"),
)


def qemu_root() -> Path:
    return unpacked(QEMU_ROOT, Paths.of(), PlainProgress())


def node_root() -> Path:
    return unpacked(NODE_ROOT, Paths.of(), PlainProgress())
