"""The archives that a cluster loads: the pause image, Slurm's images, the operator's images."""

import hashlib
import platform
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import slurm_operator
from slurm_local.build.stamps import latest_first, once
from slurm_local.image.accounts import accounts_layer
from slurm_local.image.archive import Image, write_archive
from slurm_local.image.dependencies import dependencies
from slurm_local.image.roots import SLURM_SERIES, operator_root, slurm_root
from slurm_local.image.shared_root import content_layer, plugin_layer
from slurm_local.image.tars import Entry, File, Link, files_below, write_layer
from slurm_local.paths import Paths, image_files
from slurm_local.progress import Progress
from slurm_operator import wire

PAUSE_IMAGE = "docker.io/local/pause:1"
OPERATOR_IMAGE = f"docker.io/local/slurm-operator:{slurm_operator.__version__}"
WEBHOOK_IMAGE = f"docker.io/local/slurm-operator-webhook:{slurm_operator.__version__}"

SOPERATOR_IMAGE = f"docker.io/local/slurm-operator-soperator:{slurm_operator.__version__}"

# One image name per daemon, as pods for other Slurm images expect: they give arguments, never a command.
SLURM_DAEMONS = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "sackd", "login", "mariadb")

# Brings the content of a new shared root, and the program that populates one.
POPULATE = "populate-jail"

# Older archives stay until then: another process may be loading one.
_KEPT_ARCHIVES = 2

_HOME = "/usr/lib/slurm-operator"
_POWER = "/opt/soperator/bin"  # Where slurm.conf of a SlurmCluster looks for its programs.
_POWER_VERBS = ("resume", "suspend", "resume-fail")
_ENTRY = ("tini", "--", f"{_HOME}/entry")
_LAUNCHER = f"""\
#!/usr/bin/python3 -I
import sys

sys.path.insert(0, "{_HOME}")
from slurm_entry.__main__ import main

sys.exit(main(sys.argv))
"""
_PROGRAM_ENVIRONMENT = {"PYTHONPATH": f"{_HOME}/program:{_HOME}/dependencies", "PYTHONUNBUFFERED": "1"}
_NONROOT = "65532:65532"
SLURM_IMAGE = f"docker.io/local/slurm:{SLURM_SERIES}"  # Starts whatever the pod says.


def slurm_image(daemon: str) -> str:
    """The name of one daemon's image."""
    return f"docker.io/local/{daemon}:{SLURM_SERIES}"


def pause_archive(paths: Paths, progress: Progress) -> Path:
    """The image of the container that holds a pod's namespaces: one static program that does nothing."""
    root = slurm_root(paths, progress)
    with tarfile.open(root.tar) as tar:
        program = tar.extractfile("./usr/bin/catatonit")
        assert program is not None
        layer: dict[str, Entry] = {"/pause": File(program.read(), 0o755)}
    return _archive(paths, progress, "pause", (), layer, [Image(PAUSE_IMAGE, ("/pause", "-P"))])


def slurm_archive(paths: Paths, progress: Progress) -> Path:
    """All of Slurm under one name per daemon. A changed entry point changes a small layer only."""
    root = slurm_root(paths, progress)
    layer = {**entry_layer(), **plugin_layer(paths, progress), **accounts_layer(root)}
    return _archive(paths, progress, "slurm", (root.tar,), layer, slurm_images())


def populate_archive(paths: Paths, progress: Progress) -> Path:
    """The image of the Job that populates a shared root, with what it puts there."""
    below = (slurm_root(paths, progress).tar, content_layer(paths, progress))
    return _archive(paths, progress, POPULATE, below, entry_layer(), populate_images())


def operator_archive(paths: Paths, progress: Progress) -> Path:
    """The operator under its three names. A changed program changes a small layer only."""
    root = operator_root(paths, progress)
    python = ".".join(root.versions()["python3"].split(".")[:2])
    installed = dependencies(python, paths, progress)
    return _archive(paths, progress, "operator", (root.tar, installed), program_layer(), operator_images())


def slurm_images() -> list[Image]:
    defaults = {"slurmrestd": ("0.0.0.0:6820",)}
    daemons = [Image(slurm_image(name), (*_ENTRY, name), defaults.get(name, ())) for name in SLURM_DAEMONS]
    return [*daemons, Image(SLURM_IMAGE, ("tini", "--"), ("bash",))]


def populate_images() -> list[Image]:
    return [Image(slurm_image(POPULATE), (*_ENTRY, "populate-root"))]


def operator_images() -> list[Image]:
    """Existing Deployments give flags only, so each name knows what it is for."""
    program = ("tini", "--", "python3", "-m", "slurm_operator.cli")
    return [
        Image(OPERATOR_IMAGE, (*program, "manager"), environment=_PROGRAM_ENVIRONMENT, user=_NONROOT),
        Image(WEBHOOK_IMAGE, (*program, "webhook"), environment=_PROGRAM_ENVIRONMENT, user=_NONROOT),
        Image(SOPERATOR_IMAGE, (*program, "soperator"), environment=_PROGRAM_ENVIRONMENT, user=_NONROOT),
    ]


def entry_layer() -> dict[str, Entry]:
    """The entry points, with `slurm-entry` on everybody's path for the pod's preStop."""
    package = files_below(image_files("entry"), f"{_HOME}/slurm_entry")
    launcher = File(_LAUNCHER.encode(), 0o755)
    return {
        **package,
        f"{_HOME}/entry": launcher,
        "/usr/local/bin/slurm-entry": Link(f"{_HOME}/entry"),
        **{f"{_POWER}/power_{verb.replace('-', '_')}.sh": _power_script(verb) for verb in _POWER_VERBS},
    }


def _power_script(verb: str) -> File:
    """slurmctld starts it without a PATH."""
    return File(f'#!/bin/sh\nexec {_HOME}/entry power {verb} "$1"\n'.encode(), 0o755)


def program_layer() -> dict[str, Entry]:
    """This very program, with the metadata by which it knows its version, and a short name for people."""
    version = slurm_operator.__version__
    metadata = f"Metadata-Version: 2.1\nName: slurm-operator\nVersion: {version}\n"
    return {
        **files_below(Path(slurm_operator.__file__).parent, f"{_HOME}/program/slurm_operator"),
        f"{_HOME}/program/slurm_operator-{version}.dist-info/METADATA": File(metadata.encode()),
        "/usr/local/bin/slurm-operator": _script(""),
        f"{_POWER}/power-manager": _script("power-manager "),
        # Soperator's charts and pods name these two as commands.
        "/usr/bin/slurm_operator": _script("soperator "),
        "/usr/bin/rebooter": _script("rebooter "),
    }


def _script(command: str) -> File:
    return File(f'#!/bin/sh\nexec python3 -m slurm_operator.cli {command}"$@"\n'.encode(), 0o755)


def _archive(
    paths: Paths,
    progress: Progress,
    name: str,
    below: Sequence[Path],
    layer: Mapping[str, Entry],
    images: Sequence[Image],
) -> Path:
    """The archive of these images; written when there is none of just these layers."""

    def fill(directory: Path) -> None:
        top = directory / "layer.tar"
        with progress.step(f"Writing the {name} images"):
            write_layer(top, layer)
            write_archive(directory / "images.tar", [*below, top], images, platform.machine())

    facts = [[path.parent.name for path in below], [repr(image) for image in images], _contents(layer)]
    digest = hashlib.sha256(wire.encode(facts)).hexdigest()[:12]
    directory = once(paths.images / "archives" / f"{name}-{digest}", fill)
    _prune(directory.parent, name, keep=directory)
    return directory / "images.tar"


def _contents(layer: Mapping[str, Entry]) -> list[list[str]]:
    return [[name, hashlib.sha256(repr(layer[name]).encode()).hexdigest()] for name in sorted(layer)]


def _prune(archives: Path, name: str, keep: Path) -> None:
    others = latest_first(path for path in archives.glob(f"{name}-*") if path != keep)
    for path in others[_KEPT_ARCHIVES - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
