"""Layers as tar files whose bytes depend on nothing but their contents."""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 20


@dataclass(frozen=True)
class File:
    """A file in a layer; root owns it."""

    content: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class Link:
    """A symbolic link in a layer."""

    target: str


Entry = File | Link


def files_below(directory: Path, prefix: str) -> dict[str, Entry]:
    """Every file below a directory, under another name; what Python or tests leave around is passed over."""
    found = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {
        f"{prefix}/{path.relative_to(directory)}": File(
            path.read_bytes(), 0o755 if path.stat().st_mode & 0o100 else 0o644
        )
        for path in found
    }


def write_layer(path: Path, entries: Mapping[str, Entry]) -> None:
    """A tar of the entries by name, without times or users: the same entries always give the same bytes.

    Directories that every Debian root has are left out, so that they keep their owners and modes.
    """
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        for name in _directories(entries):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for name in sorted(entries):
            _add(tar, name, entries[name])


def digest_of(path: Path) -> str:
    """The sha256 of a file, as images name their layers."""
    sha256 = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            sha256.update(chunk)
    return sha256.hexdigest()


def _add(tar: tarfile.TarFile, name: str, entry: Entry) -> None:
    info = tarfile.TarInfo(name.lstrip("/"))
    match entry:
        case File(content, mode):
            info.size, info.mode = len(content), mode
            tar.addfile(info, io.BytesIO(content))
        case Link(target):
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
            tar.addfile(info)


# Listed in a layer, a directory gets the layer's owner and mode.
_KNOWN = frozenset({"usr", "usr/bin", "usr/lib", "usr/share", "usr/local", "usr/local/bin", "etc", "opt"})


def _directories(entries: Mapping[str, Entry]) -> list[str]:
    parents = {str(parent) for name in entries for parent in Path(name.lstrip("/")).parents}
    return sorted(parents - _KNOWN - {"."})
