"""A daemon's container on a shared root: its accounts and homes are those of the root.

slurmctld, slurmd and sshd look users up outside the root, so their files of accounts are links into it. A
user that is added on any node is known to all daemons at once.
"""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from . import drivers
from .failure import Failure, Reason
from .layout import MARKER, MOUNT_POINTS, NODE_OUTPUTS

COMPLEMENT_ROOT = "/usr/lib/slurm-operator/complement-root"

ACCOUNTS = ("passwd", "group", "shadow", "gshadow")
HOMES = ("home", "opt/soperator-home")

_POLL_S = 2.0


def root_of(environment: Mapping[str, str]) -> Path | None:
    """Where the shared root is mounted, by the plugin's arguments in SHARED_ROOT; None without one."""
    given = dict(word.partition("=")[::2] for word in shlex.split(environment.get("SHARED_ROOT", "")))
    return Path(given["root"]) if given.get("root") else None


def link_accounts(root: Path, container: Path = Path("/")) -> None:
    """Makes the container's accounts and homes those of the root. What the pod mounts itself stays."""
    for name in ACCOUNTS:
        own, shared = container / "etc" / name, root / "etc" / name
        if shared.is_file() and not os.path.ismount(own):
            _link(own, shared)
    for name in HOMES:
        own, shared = container / name, root / name
        if shared.is_dir() and not os.path.ismount(own):
            _replace_empty(own, shared)


def open_tmp(tmp: Path = Path("/tmp")) -> None:  # noqa: S108
    """A volume of a pod lets everybody delete the files of others; /tmp does not."""
    tmp.chmod(0o1777)


def make_node_outputs(root: Path, is_mounted: Callable[[Path], bool] = os.path.ismount) -> None:
    """Outputs that stay on this node hide the root's, so what is to be below them is made here.

    slurmd ends a job at once whose output has no directory. Everybody may write here: what is there stays as
    it is, be it a link.
    """
    local = root / NODE_OUTPUTS
    if not is_mounted(local):
        return
    before = os.umask(0)
    try:
        local.chmod(0o1777)
        for name, mode in MOUNT_POINTS.items():
            if name.startswith(f"{NODE_OUTPUTS}/") and not os.path.lexists(root / name):
                (root / name).mkdir(mode)
    except OSError as error:
        print(f"Outputs of jobs may be lost on this node: {error}", file=sys.stderr)
    finally:
        os.umask(before)


def link_accounts_when_populated(root: Path, _main: object = None) -> None:
    """The same once there is a whole root; meant for a thread beside slurmctld, which needs none to start."""
    while not (root / MARKER).exists():
        time.sleep(_POLL_S)
    link_accounts(root)


def complement(environment: Mapping[str, str]) -> None:
    """Shows this node's /proc, /dev, /tmp and /run in the root. Raises Failure.

    sshd starts sessions in the root by chroot, and whatever is not there is not to be had.
    """
    arguments = shlex.split(environment.get("SHARED_ROOT", ""))
    root, files = root_of(environment), _driver_files(environment)
    more = drivers.prepare(root, files) if root is not None and files else []
    # Only steps read what slurmd keeps for its jobs.
    done = subprocess.run(
        [COMPLEMENT_ROOT, *arguments, "spool=none", *more], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Failure(Reason.UNSAFE_ROOT, done.stderr.strip() or f"{COMPLEMENT_ROOT} failed.")
    if root is not None and files:
        drivers.finish(root, files)


def _driver_files(environment: Mapping[str, str]) -> list[str]:
    """Those of the GPU driver; none on nodes without GPUs."""
    if not drivers.is_wanted(environment):
        return []
    files = drivers.mounted_files(Path("/proc/self/mountinfo").read_text())
    drivers.say_missing(files)
    return files


def _replace_empty(own: Path, shared: Path) -> None:
    """A link in place of a directory, which stays if there is anything in it."""
    own.parent.mkdir(parents=True, exist_ok=True)
    if own.is_dir() and not own.is_symlink():
        with suppress(OSError):
            own.rmdir()
    if own.is_symlink() or not own.exists():
        _link(own, shared)


def _link(own: Path, shared: Path) -> None:
    """A link in place of a file, there at every moment."""
    if own.is_symlink() and own.readlink() == shared:
        return
    temporary = own.with_name(f".{own.name}.slurm-operator-new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(shared)
    temporary.replace(own)
