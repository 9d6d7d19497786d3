"""containerd of one node: its configuration, and images that are unpacked once for all nodes."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from slurm_local.build import builds
from slurm_local.build.stamps import STAMP, latest_first, once
from slurm_local.errors import LocalError
from slurm_local.image import PAUSE_IMAGE
from slurm_local.machine.cell import Cell, Newborn, wait_until
from slurm_local.machine.processes import last_lines
from slurm_local.paths import Paths
from slurm_local.progress import Progress

_SEEDS_KEPT = 3
_ROOT_DIRECTORY = "root"


def config(root: Path, state: str, socket: str, networks: Path) -> str:
    """The configuration file. `state` and `socket` are paths inside the cluster, in memory there."""
    runtime = "plugins.'io.containerd.cri.v1.runtime'"
    return f"""\
version = 3
root = "{root}"
state = "{state}"

[grpc]
  address = "{socket}"

[debug]
  level = "warn"

# Its socket has one name for the whole machine, and the second node that starts would not get it.
[plugins.'io.containerd.nri.v1.nri']
  disable = true

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE_IMAGE}"

[{runtime}]
  # Without CAP_SYS_RESOURCE, as in many virtual machines, a negative adjustment makes every start fail.
  restrict_oom_score_adj = true

[{runtime}.cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "{networks}"

[{runtime}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[{runtime}.containerd.runtimes.runc.options]
  BinaryName = "/usr/sbin/runc"
  SystemdCgroup = false
"""


def command(programs: Path, configuration: Path) -> list[str]:
    """containerd finds its shim on PATH."""
    search = f"PATH={programs}:/usr/sbin:/usr/bin:/sbin:/bin"
    return ["env", search, str(programs / "containerd"), f"--config={configuration}"]


def load(cell: Cell, programs: Path, socket: str, archive: Path) -> None:
    """Brings the images of one archive into a running containerd."""
    cell.run(
        str(programs / "ctr"),
        f"--address={socket}",
        "-n",
        "k8s.io",
        "images",
        "import",
        "--local",
        str(archive),
    )


def seeded_root(cell: Cell, target: Path, archives: Sequence[Path], paths: Paths, progress: Progress) -> None:
    """Fills a node's containerd directory with unpacked images in well under a second.

    Layers are only ever read, so all nodes share them as hard links; containerd's own databases are copied.
    A process of the cluster does it: should we be killed, it ends with the cluster.
    """
    source = seed(archives, paths, progress) / _ROOT_DIRECTORY
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        cell.run("cp", "-al", str(source), str(target))
    except LocalError:  # Another file system.
        cell.run("rm", "-rf", str(target))
        cell.run("cp", "-a", str(source), str(target))
    for database in target.glob("*/*.db"):
        copy = database.with_suffix(".copy")
        shutil.copy2(database, copy)
        copy.rename(database)


def seed(archives: Sequence[Path], paths: Paths, progress: Progress) -> Path:
    """The directory with the images of these archives, unpacked once."""
    facts = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in sorted(archives)]
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]

    def fill(directory: Path) -> None:
        with progress.step("Unpacking images", "once per set of images"):
            _unpack(directory, archives, paths, progress)

    directory = once(paths.images / "seeds" / digest, fill)
    (directory / STAMP).touch()  # The ones used longest ago go first.
    _prune(directory.parent)
    return directory


def _unpack(directory: Path, archives: Sequence[Path], paths: Paths, progress: Progress) -> None:
    root = directory / _ROOT_DIRECTORY
    shutil.rmtree(root, ignore_errors=True)
    programs = builds.binaries(builds.CONTAINERD, paths, progress)
    file, log, socket = directory / "config.toml", directory / "containerd.log", "/run/seed/containerd.sock"
    file.write_text(config(root, "/run/seed/state", socket, directory / "no-networks"))
    newborn = Newborn("seed")
    try:
        process = newborn.cell.spawn(command(programs, file), log)
        inside = newborn.cell.path(socket)
        wait_until(lambda: inside.exists() or not newborn.cell.has(process), "containerd to listen")
        if not newborn.cell.has(process):
            raise LocalError(f"containerd ended while images were unpacked:\n{last_lines(log)}")
        for archive in archives:
            load(newborn.cell, programs, socket, archive)
        newborn.cell.run("kill", str(process.pid))  # It closes its databases first.
        wait_until(lambda: not newborn.cell.has(process), "containerd to end")
    finally:
        newborn.abandon()


def _prune(seeds: Path) -> None:
    for old in latest_first(seeds.iterdir())[_SEEDS_KEPT:]:
        (old / STAMP).unlink(missing_ok=True)
        shutil.rmtree(old, ignore_errors=True)
