"""A support archive: what is in it, how it is packed, and how it becomes a World again.

Everything in it went through `redact`, and Secrets are there by name only.
"""

import contextlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from slurm_operator import __version__, wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.images import named_images
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.insight.collect import Sight, Unseen
from slurm_operator.insight.logs import crashes
from slurm_operator.insight.logs.choice import Stream
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests.events import WARNING, Event
from slurm_operator.manifests.meta import Manifest, decode_child
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
from slurm_operator.runtime.manager import Program
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

T = TypeVar("T", Secret, ConfigMap)

Files = dict[str, bytes]

ROOT = "slurm-bundle"
ABOUT = "about.json"
SECRETS = "referenced/secrets.json"
CONFIG_MAPS = "referenced/configmaps.json"
SLURM = "slurm.json"
EVENTS = "events.json"

# Far more than any archive of ours; keeps one that somebody else made from filling our memory.
_MOST_BYTES = 1 << 30

README = """\
A support archive of Slurm on Kubernetes, made by `kubectl slurm bundle`.

  about.json      when, where and by which version it was made, and what could not be looked at
  status.txt      the screen of `kubectl slurm status`
  doctor.json     the findings of `kubectl slurm doctor`
  objects/        our kinds, what they are made of, pods, nodes, storage classes, namespaces
  referenced/     ConfigMaps and Secrets that our kinds name; of Secrets only which entries there are
  slurm.json      nodes, jobs, partitions and reservations as slurmctld told them
  events.json     what Kubernetes and the operator told about these objects
  logs/           the ends of the daemons' logs, and of those of the operator

Secrets were left out or replaced by [redacted]. Names of users, jobs, nodes and images are in it: look it
through before you hand it on. `kubectl slurm status --bundle FILE` shows it as if the cluster were there, and
`kubectl slurm explain KIND/NAME --bundle FILE` says why.
"""


class About(wire.Record):
    """When, where and by whom."""

    version: str
    taken_at: datetime
    kubernetes: str
    namespace: str
    served: tuple[Kind, ...]
    # Whether the values of Secrets could be read, and so be looked for everywhere.
    is_scrubbed: bool
    unseen: tuple[Unseen, ...] = ()
    # What the operator takes where a manifest names none, by variable of its environment.
    images: dict[str, str] = wire.field(default_factory=named_images)


class Named(wire.Record):
    """What was found under a name: one of the two, a reason why it could not be read, or nothing."""

    namespace: str
    name: str
    secret: Secret | None = None
    config_map: ConfigMap | None = None
    unread: str = ""


class Facts(wire.Record):
    """What one Slurm cluster said, or why it said nothing."""

    namespace: str
    name: str
    facts: Snapshot | Unreachable


class NotABundle(Exception):  # noqa: N818 - it says what is the case
    """This file is no archive of ours."""


def object_path(kind: Kind) -> str:
    return f"objects/{kind.plural}.{kind.group or 'core'}.json"


def log_path(stream: Stream, *, previous: bool) -> str:
    ending = "previous.log" if previous else "log"
    return f"logs/{stream.namespace}/{stream.pod}/{stream.container}.{ending}"


def pack(files: Mapping[str, bytes], to: Path, at: datetime) -> int:
    """Writes the archive, readable for its owner alone; its size."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(f"{ROOT}/{name}")
            entry.size, entry.mtime, entry.mode = len(files[name]), int(at.timestamp()), 0o600
            archive.addfile(entry, io.BytesIO(files[name]))
    to.touch(mode=0o600)
    return to.write_bytes(packed.getvalue())


def unpack(path: Path) -> Files:
    """The files of an archive, in memory. Raises NotABundle."""
    try:
        with tarfile.open(path, mode="r:gz") as archive:
            files = dict(_read(archive))
    except (OSError, tarfile.TarError, EOFError) as error:
        raise NotABundle(f"{path} is no archive that can be read: {error}") from error
    if ABOUT not in files:
        raise NotABundle(f"{path} was not made by `kubectl slurm bundle`.")
    return files


def _read(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    left = _MOST_BYTES
    for entry in archive:
        content = archive.extractfile(entry) if entry.isreg() else None
        if content is None:
            continue
        left -= entry.size
        if left < 0:
            raise NotABundle("The archive is larger than any that we make.")
        yield entry.name.removeprefix(f"{ROOT}/"), content.read()


def about(files: Files) -> About:
    return wire.decode(files[ABOUT], About)


def replayed(files: Files, program: Program) -> Sight:
    """The World that the archive was made of, as far as it was not redacted. Raises NotABundle."""
    try:
        told = about(files)
        picture = Picture(now=told.taken_at, served=set(told.served))
        for source in program.sources.records:
            for body in _objects(files, source.kind):
                picture.put(source.decode(body))
        for kind in program.sources.children:
            for body in _objects(files, kind):
                picture.put_child(kind, decode_child(body))
        for one in wire.decode(files.get(SECRETS, b"[]"), list[Named]):
            picture.secrets[ObjectKey(one.namespace, one.name)] = _found(one.secret, one.unread)
        for one in wire.decode(files.get(CONFIG_MAPS, b"[]"), list[Named]):
            picture.config_maps[ObjectKey(one.namespace, one.name)] = _found(one.config_map, one.unread)
        for slurm in wire.decode(files.get(SLURM, b"[]"), list[Facts]):
            picture.slurms[ObjectKey(slurm.namespace, slurm.name)] = slurm.facts
        for event in wire.decode(files.get(EVENTS, b"[]"), list[Event]):
            if event.type == WARNING:
                picture.put(event)
        crashes.put(picture, _last_words(files, picture))
    except wire.DecodeError as error:
        raise NotABundle(_other(files, error)) from error
    return Sight(picture, list(told.unseen), program.reconcilers, told.images)


def _other(files: Files, error: wire.DecodeError) -> str:
    maker = "of the version that made it"
    with contextlib.suppress(wire.DecodeError, KeyError, TypeError):
        maker = f"of version {wire.decode_any(files[ABOUT])['version']}"
    return (
        f"The archive does not fit this version, {__version__}: {error}. Read it with kubectl-slurm {maker}."
    )


def _last_words(files: Files, picture: Picture) -> dict[Stream, str]:
    return {
        stream: files[path].decode(errors="replace")
        for stream in crashes.silent(picture)
        if (path := log_path(stream, previous=True)) in files
    }


def _objects(files: Files, kind: Kind) -> Iterator[bytes]:
    found: list[Any] = wire.decode_any(files.get(object_path(kind), b"[]"))
    return map(wire.encode, found)


def _found(value: T | None, unread: str) -> T | Unread | None:
    return Unread(why=unread) if unread else value


def with_kind(manifest: Manifest, kind: Kind) -> Manifest:
    """Items of a list do not say what they are."""
    return {"apiVersion": kind.api_version, "kind": kind.kind} | manifest
