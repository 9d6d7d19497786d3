"""Slurm's programs without any daemon running: enough to ask how they read a hostlist or a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testing.boxed.box import Box, box_in
from testing.boxed.daemon import wait_until

HOSTNAME = "ctld-0"
ADDRESS = "198.18.255.1"  # For benchmarks of networks, so never anybody's.
CONF = f"ClusterName=x\nSlurmctldHost={HOSTNAME}({ADDRESS})\nAuthType=auth/slurm\nCredType=cred/slurm\n"


@contextmanager
def parser_box(rootfs: Path, directory: Path) -> Iterator[Box]:
    """A box with the least configuration that Slurm's commands ask for."""
    with box_in(directory, rootfs, HOSTNAME) as box:
        wait_until(box.path("/usr/bin/scontrol").exists, "the box to have its own files")
        # slurmctld looks up names only where there is more than the loopback.
        box.run("ip", "link", "add", "one", "type", "veth", "peer", "name", "two")
        box.run("ip", "address", "add", f"{ADDRESS}/24", "dev", "one")
        box.run("ip", "link", "set", "one", "up")
        box.run("ip", "link", "set", "two", "up")
        box.append("/etc/hosts", f"{ADDRESS} {HOSTNAME}")
        box.path("/etc/slurm/slurm.conf").write_text(CONF)
        box.write_secret("/etc/slurm/slurm.key", b"x" * 1024, (0, 0))
        yield box
