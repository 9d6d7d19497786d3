"""Programs built from Go modules: pinned by go.mod and go.sum, kept in the cache, built once."""

import hashlib
import subprocess
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from slurm_local.build import versions
from slurm_local.build.stamps import is_complete, once
from slurm_local.build.toolchain import Go, go
from slurm_local.errors import LocalError
from slurm_local.paths import Paths, module_files
from slurm_local.progress import Progress, Step


@dataclass(frozen=True)
class GoBuild:
    """One module whose `tool` lines name the programs to build."""

    module: str
    version: str
    programs: tuple[str, ...]
    minutes: str
    stamp: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    pins: Path | None = None  # Where go.mod and go.sum lie, if not in this package.

    @property
    def files(self) -> Path:
        return self.pins or module_files(self.module)


_KUBE_STAMP = "k8s.io/component-base/version"
_MAJOR, _MINOR, _ = versions.KUBERNETES.split(".")

KUBERNETES = GoBuild(
    module="kubernetes",
    version=versions.KUBERNETES,
    programs=("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"),
    minutes="about 7 minutes on two cores, once",
    # A Kubernetes without its version stamp calls itself v0.0.0, and clients refuse to talk to it.
    stamp=(
        f"{_KUBE_STAMP}.gitVersion=v{versions.KUBERNETES}",
        f"{_KUBE_STAMP}.gitMajor={_MAJOR}",
        f"{_KUBE_STAMP}.gitMinor={_MINOR}",
    ),
    renamed=(("server", "etcd"),),  # etcd's main package lies in a directory of that name.
)
CONTAINERD = GoBuild(
    module="containerd",
    version=versions.CONTAINERD,
    programs=("containerd", "containerd-shim-runc-v2", "ctr"),
    minutes="about a minute, once",
    stamp=(f"github.com/containerd/containerd/v2/version.Version={versions.CONTAINERD}",),
)
COREDNS = GoBuild("coredns", versions.COREDNS, ("coredns",), "about a minute, once")
KWOK = GoBuild("kwok", versions.KWOK, ("kwok",), "about 2 minutes, once")
HELM = GoBuild(
    module="helm",
    version=versions.HELM,
    programs=("helm",),
    minutes="about 3 minutes, once",
    stamp=(f"helm.sh/helm/v4/internal/version.version=v{versions.HELM}",),
)


def binaries(build: GoBuild, paths: Paths, progress: Progress) -> Path:
    """The directory that holds the programs of one build; builds them if they are not there yet."""
    toolchain = go()

    def fill(directory: Path) -> None:
        with progress.step(f"Building {build.module} {build.version}", build.minutes) as step:
            _compile(build, toolchain, directory, paths, progress, step)

    return once(directory_of(build, toolchain, paths), fill)


def is_built(build: GoBuild, paths: Paths) -> bool:
    return is_complete(directory_of(build, go(), paths))


def directory_of(build: GoBuild, toolchain: Go, paths: Paths) -> Path:
    """A directory of its own for everything that makes the programs different."""
    files = build.files
    pins = [(files / "go.mod").read_text(), (files / "go.sum").read_text(), *build.stamp]
    digest = hashlib.sha256("\n".join(pins).encode()).hexdigest()[:8]
    return paths.builds / f"{build.module}-{build.version}-go{toolchain.version}-{digest}"


def _compile(
    build: GoBuild, toolchain: Go, directory: Path, paths: Paths, progress: Progress, step: Step
) -> None:
    program, environment = toolchain.ready(paths, progress)
    # Installed packages may lie in a read-only place, and Go locks the module's directory.
    source = directory / "source"
    source.mkdir(exist_ok=True)
    for name in ("go.mod", "go.sum"):
        (source / name).write_bytes((build.files / name).read_bytes())

    step.say("fetching sources")
    total = len(_lines([str(program), "list", "-deps", "tool"], source, environment, step))
    flags = " ".join(["-s", "-w", *(f"-X {stamp}" for stamp in build.stamp)])
    command = [str(program), "build", "-v", "-trimpath", "-ldflags", flags, "-o", f"{directory}/", "tool"]
    _lines(command, source, environment, step, total)
    for before, after in build.renamed:
        (directory / before).rename(directory / after)
    for name in build.programs:
        if not (directory / name).is_file():
            raise LocalError(f"Building {build.module} {build.version} gave no program {name!r}.")


def _lines(
    command: list[str], source: Path, environment: dict[str, str], step: Step, total: int = 0
) -> list[str]:
    """What a Go command prints, a line at a time; with `total`, each line moves the bar."""
    lines: list[str] = []
    last: deque[str] = deque(maxlen=20)
    with subprocess.Popen(
        command, cwd=source, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            last.append(line)
            step.say(line.strip())
            if total:
                step.at(len(lines), total)
    if process.returncode != 0:
        raise LocalError(f"`{' '.join(command[:2])}` failed:\n{''.join(last).rstrip()}")
    return lines
