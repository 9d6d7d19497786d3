"""Slurm's programs without any daemon running: enough to ask how they read a hostlist or a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_operator.local.boxed.box import Box, box_in
from slurm_operator.local.boxed.daemon import wait_until

HOSTNAME = "ctld-0"
CONF = f"ClusterName=x\nSlurmctldHost={HOSTNAME}(127.0.0.1)\nAuthType=auth/slurm\nCredType=cred/slurm\n"


@contextmanager
def parser_box(rootfs: Path, directory: Path) -> Iterator[Box]:
    """A box with the least configuration that Slurm's commands ask for."""
    with box_in(directory, rootfs, HOSTNAME) as box:
        wait_until(box.path("/usr/bin/scontrol").exists, "the box to have its own files")
        box.path("/etc/slurm/slurm.conf").write_text(CONF)
        box.write_secret("/etc/slurm/slurm.key", b"x" * 1024, (0, 0))
        yield box
