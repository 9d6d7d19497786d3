"""Root filesystems made of distribution packages, each kept as one tar beside the list of what went in."""

import hashlib
import os
import shutil
import subprocess
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from slurm_local.build.packages import install
from slurm_local.build.stamps import once
from slurm_local.errors import LocalError
from slurm_local.paths import Paths
from slurm_local.progress import Progress, Step
from slurm_operator import wire

SUITE = "forky"

_OPTIONS = (
    "--variant=minbase",
    "--mode=root",
    "--format=tar",
    # A mirror of a testing suite may lag behind for longer than its index says it is good.
    '--aptopt=Acquire::Check-Valid-Until "false"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
)

# Packages leave the testing suite for weeks at a time. What is away is then taken from unstable, where it
# still is, together with no more than it needs; whatever the suite has comes from the suite.
_SECOND_SOURCE = f"""
cd "$1/etc/apt"
sed -n 's/ {SUITE} main/ unstable main/p' sources.list > sources.list.d/unstable.list
printf 'Package: *\\nPin: release n=sid\\nPin-Priority: 100\\n' > preferences.d/unstable
"""

# What the machine that makes the root tells about itself.
_ANONYMOUS = 'rm -f "$1/etc/resolv.conf" "$1/etc/hostname" "$1/etc/machine-id"'


@dataclass(frozen=True)
class User:
    """An account made before any package is installed, so that no package chooses its number."""

    name: str
    number: int
    home: str = "/nonexistent"


@dataclass(frozen=True)
class DebianRoot:
    """What one root filesystem is made of; `finish` is a shell script that gets the finished root as $1."""

    name: str
    packages: tuple[str, ...]
    minutes: str
    users: tuple[User, ...] = ()
    finish: str = ""
    suite: str = SUITE

    @property
    def second_source(self) -> str:
        """Shell lines for a suite that packages leave at times; a released one has them all."""
        return _SECOND_SOURCE if self.suite == SUITE else ""

    @property
    def digest(self) -> str:
        """The same for the same recipe, and for no other."""
        recipe = [self.suite, _OPTIONS, self.second_source, _ANONYMOUS, self.name, self.packages, self.finish]
        return hashlib.sha256(wire.encode([recipe, [_account(user) for user in self.users]])).hexdigest()[:12]


@dataclass(frozen=True)
class BuiltRoot:
    """A finished root: its tar, and the package versions in it."""

    directory: Path

    @property
    def tar(self) -> Path:
        return self.directory / "root.tar"

    @property
    def versions_file(self) -> Path:
        return self.directory / "packages.txt"

    def versions(self) -> dict[str, str]:
        """Installed packages and their versions."""
        return dict(line.split() for line in self.versions_file.read_text().splitlines())


def built(root: DebianRoot, paths: Paths, progress: Progress) -> BuiltRoot:
    """The root as a tar; made when there is none of this very recipe."""

    def fill(directory: Path) -> None:
        install(progress)
        with progress.step(f"Making the {root.name} root filesystem", root.minutes) as step:
            _mmdebstrap(root, directory, step)

    return BuiltRoot(once(paths.images / f"{root.name}-{root.digest}", fill))


def unpacked(root: DebianRoot, paths: Paths, progress: Progress) -> Path:
    """The root as a directory, to run programs in. Whoever runs them must not write to it."""
    tar = built(root, paths, progress).tar

    def fill(directory: Path) -> None:
        files = directory / "root"
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir()
        with progress.step(f"Unpacking the {root.name} root filesystem"):
            subprocess.run(["tar", "--numeric-owner", "-xpf", tar, "-C", files], check=True)

    return once(paths.images / f"{root.name}-{root.digest}-unpacked", fill) / "root"


def _mmdebstrap(root: DebianRoot, directory: Path, step: Step) -> None:
    if os.geteuid() != 0:
        raise LocalError("Making a root filesystem needs root: packages own files as many users.")
    scratch = directory / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    list_versions = """chroot "$1" dpkg-query --show --showformat '${Package} ${Version}\\n'"""
    command = [
        # Mounts of an interrupted run must not outlive it: its remains are deleted here.
        *("unshare", "--mount", "mmdebstrap"),
        *_OPTIONS,
        *([f"--setup-hook={root.second_source}"] if root.second_source else []),
        f"--essential-hook={_accounts(root.users)}",
        *([f"--customize-hook={root.finish}"] if root.finish else []),
        f"--customize-hook={list_versions} > '{directory}/packages.txt'",
        f"--customize-hook={_ANONYMOUS}",
        f"--include={','.join(root.packages)}",
        *(root.suite, str(directory / "root.tar")),
    ]
    _run(command, {"TMPDIR": str(scratch)}, step)
    shutil.rmtree(scratch)


def _run(command: list[str], environment: dict[str, str], step: Step) -> None:
    last: deque[str] = deque(maxlen=20)
    with subprocess.Popen(
        command,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last.append(line)
            step.say(line.strip().removeprefix("I: "))
    if process.returncode != 0:
        raise LocalError(f"mmdebstrap failed:\n{''.join(last).rstrip()}")


def _accounts(users: tuple[User, ...]) -> str:
    return "\n".join(["set -e", *(_account(user) for user in users)])


def _account(user: User) -> str:
    """Shell lines that add an account without the tools for it, which are not installed yet."""
    passwd = f"{user.name}:x:{user.number}:{user.number}::{user.home}:/usr/sbin/nologin"
    return f"""\
echo '{user.name}:x:{user.number}:' >> "$1/etc/group"
echo '{passwd}' >> "$1/etc/passwd"
echo '{user.name}:*:20000::::::' >> "$1/etc/shadow\""""
