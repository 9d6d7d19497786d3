"""What must be true before anything is started. All that is wrong is said at once, each with a way out."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from slurm_local.errors import LocalError
from slurm_local.machine import cgroups
from slurm_local.machine.cell import PRIVATE
from slurm_local.machine.neighbours import foreign_home
from slurm_local.paths import Paths

_GIB = 1024**3
STATE_BYTES = 2 * _GIB
CACHE_BYTES = 8 * _GIB
MEMORY_BYTES = 2 * _GIB
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")

# Tried in a network namespace that is gone again when the command ends.
_KERNEL_TRIAL = """
ip link add trial type bridge || { echo "bridge devices (module bridge)"; exit 1; }
ip link add left type veth peer name right || { echo "veth devices (module veth)"; exit 1; }
nft add table ip trial || { echo "nftables (module nf_tables)"; exit 1; }
test -e /proc/sys/net/bridge/bridge-nf-call-iptables || { echo "br_netfilter"; exit 1; }
"""


def check(name: str, paths: Paths, *, builds_needed: bool) -> None:
    """Raises LocalError with everything that stands in the way."""
    _raise([*_place(name, paths), *_machine(paths, builds_needed=builds_needed)])


def check_kernel() -> None:
    """The same for what the kernel must be able to do; needs root and the distribution's programs."""
    _raise(list(_kernel()))


def _raise(found: list[str]) -> None:
    if found:
        raise LocalError(
            "The cluster cannot start here:\n" + "\n".join(f"  - {problem}" for problem in found)
        )


def _place(name: str, paths: Paths) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"{name!r} is no name for a cluster: use up to 20 small letters, digits and dashes."
    elif (other := foreign_home(name, paths)) is not None:
        yield (
            f"A cluster {name!r} runs already with its files in {other}, not in {paths.home}. "
            "It may be another user's. Choose a name of your own with --name."
        )
    for variable, directory in (("SLURM_OPERATOR_HOME", paths.home), ("SLURM_OPERATOR_CACHE", paths.cache)):
        if any(directory.is_relative_to(private) for private in PRIVATE):
            yield f"{directory} lies where clusters keep their own files. Set {variable} to another place."
    if any(Path(sys.prefix).is_relative_to(private) for private in PRIVATE):
        yield f"Clusters cannot see the Python in {sys.prefix}. Install this program elsewhere."


def _machine(paths: Paths, *, builds_needed: bool) -> Iterator[str]:
    if os.geteuid() != 0:
        yield (
            "Containers and networks need root. Run it with sudo, or as root. Clusters are then root's: "
            "use sudo for every further command too."
        )
    needed = [(paths.home, STATE_BYTES), *([(paths.cache, CACHE_BYTES)] if builds_needed else [])]
    for directory, wanted in needed:
        free = shutil.disk_usage(_existing(directory)).free
        if free < wanted:
            yield f"{directory} has {free / _GIB:.1f} GiB left; {wanted / _GIB:.0f} GiB are needed."
    available = _available_memory()
    if available < MEMORY_BYTES:
        yield f"{available / _GIB:.1f} GiB of memory are free; {MEMORY_BYTES / _GIB:.0f} GiB are needed."


def _kernel() -> Iterator[str]:
    for module in ("overlay", "br_netfilter", "nf_tables", "veth"):  # Built in, or there already: no harm.
        if shutil.which("modprobe"):
            subprocess.run(["modprobe", "--quiet", module], check=False, capture_output=True)
    if "overlay" not in Path("/proc/filesystems").read_text():
        yield "The kernel has no overlay file system (module overlay), which containers are made of."
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", _KERNEL_TRIAL], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lacking = done.stdout.strip() or f"network namespaces ({done.stderr.strip()})"
        yield f"The kernel, or the rights of this user, lack {lacking}."
    if not any((path / "cgroup.procs").exists() for path in cgroups.hierarchies()):
        yield f"No control groups are mounted at {cgroups.ROOT}."


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _existing(directory: Path) -> Path:
    return directory if directory.exists() else _existing(directory.parent)
