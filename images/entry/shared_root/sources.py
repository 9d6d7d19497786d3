"""Where the content of a root comes from: an archive, a directory or snapshot, or a restic repository."""

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from .failure import Failure, Reason, from_output
from .report import Report

# Where sources are looked for when the Job names none: a snapshot's volume, what our image brings, restic's.
SNAPSHOT = Path("/jail")
ARCHIVES = Path("/usr/share/slurm-operator")
RESTIC = Path("/jail_restic")

_CHUNK = 1 << 20
_PASSWORDS = ("RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND")
_COMPRESSIONS: Mapping[bytes, str] = {
    b"\x1f\x8b": "--gzip",
    b"\x28\xb5\x2f\xfd": "--zstd",
    b"\xfd7zXZ": "--xz",
}
# Capabilities of programs and what users attach; other kinds mean nothing on another file system.
_ATTRIBUTES = ("--xattrs", "--xattrs-include=user.*", "--xattrs-include=security.capability")


class Source(Protocol):
    """One kind of source."""

    @property
    def name(self) -> str:
        """What it is called in the marker: its kind and its path."""

    def identity(self, report: Report) -> str:
        """The same for the same content."""

    def unpack(self, into: Path, report: Report) -> None:
        """Fills an empty directory. Raises Failure; what is in the directory then is of no use."""


@dataclass(frozen=True)
class Archive:
    """A tar, plain or compressed."""

    path: Path

    @property
    def name(self) -> str:
        return f"archive {self.path}"

    def identity(self, report: Report) -> str:
        sha256 = hashlib.sha256()
        with self.path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                sha256.update(chunk)
                report.tick()
        return f"sha256:{sha256.hexdigest()}"

    def unpack(self, into: Path, report: Report) -> None:
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            compression = _compression(file.read(6))
            file.seek(0)
            if not compression:
                _check_space(into, size)
            _extract(into, file, compression, report, size)


@dataclass(frozen=True)
class Directory:
    """A directory, with everything on its own file system."""

    path: Path

    @property
    def name(self) -> str:
        return f"directory {self.path}"

    def identity(self, report: Report) -> str:
        sha256 = hashlib.sha256()
        for walked, directories, files in os.walk(self.path):
            directories.sort()
            for entry in sorted([*directories, *files]):
                path = Path(walked) / entry
                status = path.lstat()
                facts = (status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_mtime_ns)
                sha256.update(os.fsencode(f"{path.relative_to(self.path)}\0{facts}\n"))
            report.tick()
        return f"listing:{sha256.hexdigest()}"

    def unpack(self, into: Path, report: Report) -> None:
        create = [
            "tar",
            "--create",
            "--one-file-system",
            "--numeric-owner",
            "--acls",
            *_ATTRIBUTES,
            "--sparse",
        ]
        with _running([*create, "--directory", str(self.path), "."], f"Cannot read {self.path}") as reader:
            assert reader.stdout is not None
            _extract(into, reader.stdout, "--acls", report, None)


@dataclass(frozen=True)
class Restic:
    """The newest snapshot of a restic repository."""

    path: Path

    @property
    def name(self) -> str:
        return f"restic {self.path}"

    def identity(self, report: Report) -> str:
        command = [*self._restic("snapshots"), "--latest=1", "latest"]
        try:
            done = subprocess.run(command, env=_plain_words(), capture_output=True, text=True, check=False)
        except OSError as error:
            raise Failure(
                Reason.NO_SOURCE, f"{self.path} is a restic repository, but this image has no restic."
            ) from error
        if done.returncode != 0:
            raise from_output(done.stderr, f"restic cannot read {self.path}", Reason.BROKEN_SOURCE)
        snapshots = json.loads(done.stdout or "[]")
        if not snapshots:
            raise Failure(Reason.BROKEN_SOURCE, f"The restic repository {self.path} has no snapshot.")
        return f"restic:{snapshots[-1]['id']}"

    def unpack(self, into: Path, report: Report) -> None:
        command = [*self._restic("restore"), "-o", "local.connections=64", "--exclude-xattr=system.nfs4_acl"]
        # restic removes what stands in the place of its target, and a link of /proc would stand there.
        command += ["--target=.", "latest"]
        with _running(command, f"restic cannot restore {self.path}", directory=into) as restoring:
            assert restoring.stdout is not None
            for line in restoring.stdout:
                report.tick(**_restored(line))

    def _restic(self, verb: str) -> list[str]:
        password = [] if any(os.environ.get(name) for name in _PASSWORDS) else ["--insecure-no-password"]
        return ["restic", verb, "--json", "--no-lock", *password, f"--repo={self.path.absolute()}"]


def find_source(named: str) -> Source:
    """The source that the Job names, else the first that this image or its volumes have."""
    if named:
        path = Path(named)
        if not path.exists():
            raise Failure(
                Reason.NO_SOURCE, f"There is no {path}: the image or the volume has another content."
            )
        return _source(path)
    for path in (SNAPSHOT, *sorted(ARCHIVES.glob("root.tar*")), RESTIC):
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            return _source(path)
    raise Failure(
        Reason.NO_SOURCE,
        f"There is nothing to populate the root from: no {SNAPSHOT}, no {ARCHIVES}/root.tar*, no {RESTIC}. "
        "Use an image that has one of them, or name it in POPULATE_SOURCE.",
    )


def _source(path: Path) -> Source:
    if path.is_file():
        return Archive(path)
    is_repository = (path / "config").is_file() and (path / "snapshots").is_dir()
    return Restic(path) if is_repository else Directory(path)


def _compression(magic: bytes) -> str:
    return next((option for start, option in _COMPRESSIONS.items() if magic.startswith(start)), "")


def _check_space(into: Path, needed: int) -> None:
    room = os.statvfs(into)
    free = room.f_bavail * room.f_frsize
    if room.f_blocks and free < needed:  # Some file systems do not say how large they are.
        raise Failure(
            Reason.OUT_OF_SPACE,
            f"The content needs {needed // 2**20} MiB and the volume has {free // 2**20} MiB free. "
            "Enlarge the volume or remove files; nothing was changed.",
        )


def _extract(into: Path, content: IO[bytes], option: str, report: Report, size: int | None) -> None:
    """Feeds tar, so that we know how far it is and can stop it."""
    command = ["tar", "--extract", "--numeric-owner", "--same-owner", "--preserve-permissions", *_ATTRIBUTES]
    command += [*([option] if option else []), "--directory", str(into)]
    if os.environ.get("POPULATE_WITHOUT_ATTRIBUTES") == "1":
        command = [word for word in command if not word.startswith(("--xattrs", "--acls"))]
    doing = "Cannot unpack the content"
    done = 0
    with _running(command, doing, stdin=subprocess.PIPE, check=_check_attributes) as tar:
        assert tar.stdin is not None
        try:
            while chunk := content.read(_CHUNK):
                tar.stdin.write(chunk)
                done += len(chunk)
                report.tick(bytes=done, **({"of": size} if size else {}))
            tar.stdin.close()
        except BrokenPipeError:  # It has ended; what it complained about is raised below.
            pass


def _check_attributes(said: str) -> None:
    """tar only warns where attributes are lost, and programs that need a capability would stop working."""
    lost = [
        line for line in said.splitlines() if "extended attribute" in line or "Cannot set POSIX ACLs" in line
    ]
    if not lost:
        return
    reason = Reason.NOT_PERMITTED if "Operation not permitted" in lost[0] else Reason.NO_EXTENDED_ATTRIBUTES
    raise Failure(
        reason,
        f"{len(lost)} attributes of files, such as capabilities of programs, cannot be stored: {lost[0]}. "
        "The volume must support extended attributes and the Job needs the capability SETFCAP. To do "
        "without, set POPULATE_WITHOUT_ATTRIBUTES=1.",
    )


@contextmanager
def _running(
    command: Sequence[str],
    doing: str,
    stdin: int = subprocess.DEVNULL,
    check: Callable[[str], None] | None = None,
    directory: Path | None = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that ends with the block. Raises Failure with its complaints when it fails.

    `check` gets the complaints of one that succeeded.
    """
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                command,
                env=_plain_words(),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=complaints,
                cwd=directory,
            )
        except OSError as error:
            raise Failure(
                Reason.NO_SOURCE, f"{doing}: cannot start {command[0]}: {error.strerror}."
            ) from error
        try:
            yield process
            if process.stdin is not None and not process.stdin.closed:
                _close(process.stdin)
            code = process.wait()
        finally:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    _close(stream)
            process.wait()
        complaints.seek(0)
        said = complaints.read().decode(errors="replace")
        if code != 0:
            raise from_output(said, doing, Reason.BROKEN_SOURCE)
        if check is not None:
            check(said)


def _close(stream: IO[bytes]) -> None:
    with suppress(BrokenPipeError):
        stream.close()


def _restored(line: bytes) -> dict[str, object]:
    try:
        status = json.loads(line)
    except ValueError:
        return {}
    if not isinstance(status, dict):
        return {}
    figures = {"bytes": status.get("bytes_restored"), "of": status.get("total_bytes")}
    return {name: value for name, value in figures.items() if value is not None}


def _plain_words() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}
