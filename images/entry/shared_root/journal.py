"""What a run that was stopped has left: the unpacked content, and how far the root is changed."""

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass

from . import places
from .layout import WORK

NEW = f"{WORK}/new"
STAGED = f"{WORK}/staged"
JOURNAL = f"{WORK}/journal"


@dataclass(frozen=True)
class Journal:
    """A root that is being changed: from which content, and what of the old one is not touched."""

    identity: str
    phase: str
    kept: tuple[str, ...]
    spared: tuple[str, ...]


def read_journal(root: int) -> Journal | None:
    content = places.read(root, JOURNAL)
    if content is None:
        return None
    fields = json.loads(content)
    return Journal(fields["identity"], fields["phase"], tuple(fields["kept"]), tuple(fields["spared"]))


def write_journal(root: int, journal: Journal) -> None:
    places.write(root, JOURNAL, json.dumps(asdict(journal)).encode(), 0o600)


def remove_work(root: int) -> None:
    """What says that the unpacked content is of use is removed before the content."""
    places.remove(root, STAGED)
    places.remove(root, JOURNAL)
    remove_tree(root, WORK)


def remove_tree(root: int, path: str) -> None:
    *above, name = places.parts(path)
    with suppress(FileNotFoundError), places.opened(root, "/".join(above)) as directory:
        if places.kind_of(directory, name) is not None:
            shutil.rmtree(name, dir_fd=directory)
