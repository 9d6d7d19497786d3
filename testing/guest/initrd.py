"""The first file system of the virtual machine: loads the drivers of its disks, and hands over to systemd."""

import lzma
import shutil
import subprocess
from pathlib import Path

# What a kernel of the distribution has as modules: disks, their file system, layers of images, the channel
# by which commands are sent.
_MODULES = ("virtio_pci", "virtio_blk", "ext4", "overlay", "virtio_console")

# Disks in the order of `-drive`: the system, unpacked images, files of the test. The agent is a unit of the
# system, so that systemd is what starts everything, as on a real node.
_INIT = """\
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod "/modules/$module"; done
mount -t ext4 /dev/vda /system
mkdir -p /system/var/lib/containerd /system/test
mount -t ext4 /dev/vdb /system/var/lib/containerd
mount -t ext4 /dev/vdc /system/test
echo 5a06741d6f6241ba8135c1415840f58c > /system/etc/machine-id
cp /agent.service /system/etc/systemd/system/
mkdir -p /system/etc/systemd/system/multi-user.target.wants
ln -sf /etc/systemd/system/agent.service /system/etc/systemd/system/multi-user.target.wants/
exec switch_root /system /usr/lib/systemd/systemd
"""

_UNIT = """\
[Unit]
DefaultDependencies=no
After=sysinit.target dbus.socket
Wants=dbus.socket
[Service]
ExecStart=/bin/sh /test/agent
StandardError=journal+console
"""


def kernel_of(root: Path) -> Path:
    return next(root.glob("boot/vmlinuz-*"))


def write_initrd(root: Path, target: Path) -> Path:
    """An archive as the kernel unpacks it, with busybox and modules of a root that has a kernel."""
    tree = target.with_suffix(".d")
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("bin", "proc", "sys", "dev", "system", "modules"):
        (tree / name).mkdir(parents=True)
    shutil.copy2(root / "bin/busybox", tree / "bin/busybox")
    modules = next(root.glob("lib/modules/*"))
    names = []
    for path in _in_order(modules):
        plain = Path(path).name.removesuffix(".xz")
        packed = (modules / path).read_bytes()
        (tree / "modules" / plain).write_bytes(lzma.decompress(packed) if path.endswith(".xz") else packed)
        names.append(plain)
    (tree / "modules/order").write_text("\n".join(names) + "\n")
    (tree / "agent.service").write_text(_UNIT)
    (tree / "init").write_text(_INIT)
    (tree / "init").chmod(0o755)
    listed = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    with target.open("wb") as archive:
        # Of the same root: this machine may have no cpio.
        mounted = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            'mount --bind "$2" "$1/mnt" && exec chroot "$1" sh -c "cd /mnt && busybox cpio -o -H newc"',
            "cpio",
            str(root),
            str(tree),
        ]
        subprocess.run(mounted, input=listed.encode(), stdout=archive, check=True)
    shutil.rmtree(tree)
    return target


def _in_order(modules: Path) -> list[str]:
    """Files of the modules that are wanted, each after those that it needs."""
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[path] = others.split()
    by_name = {Path(path).name.split(".ko")[0]: path for path in needs}
    found: list[str] = []
    for path in [by_name[name] for name in _MODULES if name in by_name]:  # Others are part of the kernel.
        # modules.dep names the ones that are needed first last.
        found += [one for one in [*reversed(needs[path]), path] if one not in found]
    return found
