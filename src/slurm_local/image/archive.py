"""Docker archives written in plain Python: layers, a description of each image, and a list of both."""

import hashlib
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from slurm_local.image.tars import digest_of
from slurm_operator import wire

_LONG_AGO = "1970-01-01T00:00:00Z"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    """How containers of one name start. All images of an archive stand on the same layers."""

    name: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""


def write_archive(path: Path, layers: Sequence[Path], images: Sequence[Image], machine: str) -> None:
    """An archive of the images, each layer in it once. Same layers and images in, same bytes out."""
    digests = [digest_of(layer) for layer in layers]
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        for layer, digest in zip(layers, digests, strict=True):
            with layer.open("rb") as content:
                _add(tar, f"{digest}.tar", layer.stat().st_size, content)
        listed = [_described(tar, image, digests, machine) for image in images]
        _add_json(tar, "manifest.json", listed)


def image_config(image: Image, digests: Sequence[str], machine: str) -> dict[str, object]:
    """The image's description as the format wants it."""
    path = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    return {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "created": _LONG_AGO,
        "config": {
            "Env": [f"{name}={value}" for name, value in {**path, **image.environment}.items()],
            "Entrypoint": list(image.entrypoint),
            "Cmd": list(image.command),
            "User": image.user,
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        "history": [{"created": _LONG_AGO} for _ in digests],
    }


def _described(tar: tarfile.TarFile, image: Image, digests: Sequence[str], machine: str) -> dict[str, object]:
    config = image_config(image, digests, machine)
    name = f"{hashlib.sha256(wire.encode_sorted(config)).hexdigest()}.json"
    _add_json(tar, name, config)
    return {"Config": name, "RepoTags": [image.name], "Layers": [f"{digest}.tar" for digest in digests]}


def _add_json(tar: tarfile.TarFile, name: str, value: object) -> None:
    content = wire.encode_sorted(value)
    _add(tar, name, len(content), io.BytesIO(content))


def _add(tar: tarfile.TarFile, name: str, size: int, content: IO[bytes]) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    tar.addfile(info, content)
