"""A new content, already unpacked on the root's own file system, put in the place of the old one.

Moving is a rename per file, or per directory where the root has none of that name: it needs no space, and
each file is the old one or the new one. Both functions can be stopped anywhere and called again.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass

from . import places


@dataclass(frozen=True)
class Rules:
    """Paths, without a leading slash, that the new content has no say in."""

    kept: frozenset[str]  # Not overwritten, not deleted.
    kept_prefixes: tuple[str, ...] = ()  # The same for files whose path begins so.
    spared: frozenset[str] = frozenset()  # Overwritten where the content has such a file, but not deleted.

    def keeps(self, path: str) -> bool:
        return path in self.kept or path.startswith(self.kept_prefixes)

    def spares(self, path: str) -> bool:
        return self.keeps(path) or path in self.spared

    def has_below(self, path: str) -> bool:
        """Whether something below the path is not to be deleted."""
        everything: Iterable[str] = (*self.kept, *self.kept_prefixes, *self.spared)
        return any(one.startswith(f"{path}/") for one in everything)


def delete_others(new: int | None, root: int, rules: Rules, tick: Callable[[], None], path: str = "") -> None:
    """Deletes what the new content does not have; needs it whole, before anything of it was moved."""
    for name in sorted(os.listdir(root)):
        tick()
        child = f"{path}/{name}" if path else name
        if rules.spares(child):
            continue
        theirs = None if new is None else places.kind_of(new, name)
        mine = places.kind_of(root, name)
        if mine is None:
            continue
        if stat.S_ISDIR(mine) and (theirs is None or stat.S_ISDIR(theirs)):
            _delete_others_in(new if theirs is not None else None, root, name, rules, tick, child)
        elif theirs is None:
            os.unlink(name, dir_fd=root)


def _delete_others_in(
    new: int | None, root: int, name: str, rules: Rules, tick: Callable[[], None], child: str
) -> None:
    if new is None and not rules.has_below(child):
        shutil.rmtree(name, dir_fd=root)
        return
    with closing(_Descriptor(places.enter(root, name, child))) as below:
        if new is None:
            delete_others(None, below.number, rules, tick, child)
            return
        with closing(_Descriptor(places.enter(new, name, child))) as theirs:
            delete_others(theirs.number, below.number, rules, tick, child)


def move_in(
    new: int,
    root: int,
    rules: Rules,
    aside: Callable[[int, str, str], None],
    tick: Callable[[], None],
    path: str = "",
) -> None:
    """Moves the new content in. A directory in the place of a file of the content is put `aside` first."""
    for name in sorted(os.listdir(new)):
        tick()
        child = f"{path}/{name}" if path else name
        if rules.keeps(child):
            continue
        theirs, mine = places.kind_of(new, name), places.kind_of(root, name)
        assert theirs is not None, "nobody else changes the new content"
        if not stat.S_ISDIR(theirs):
            if mine is not None and stat.S_ISDIR(mine):
                aside(root, name, child)
            os.rename(name, name, src_dir_fd=new, dst_dir_fd=root)
            continue
        if mine is not None and not stat.S_ISDIR(mine):
            # A link, or a file, in the place of a directory: what a link leads to is not touched.
            os.unlink(name, dir_fd=root)
            mine = None
        if mine is None:
            os.rename(name, name, src_dir_fd=new, dst_dir_fd=root)
            continue
        with (
            closing(_Descriptor(places.enter(new, name, child))) as source,
            closing(_Descriptor(places.enter(root, name, child))) as target,
        ):
            move_in(source.number, target.number, rules, aside, tick, child)
            copy_metadata(source.number, target.number)


def copy_metadata(source: int, target: int) -> None:
    """Owner, mode and attributes of a directory; what is right already is not written."""
    wanted, found = os.fstat(source), os.fstat(target)
    if (wanted.st_uid, wanted.st_gid) != (found.st_uid, found.st_gid):
        os.chown(target, wanted.st_uid, wanted.st_gid)
    if stat.S_IMODE(wanted.st_mode) != stat.S_IMODE(os.fstat(target).st_mode):
        os.fchmod(target, stat.S_IMODE(wanted.st_mode))
    for name in _attributes(source):
        os.setxattr(target, name, os.getxattr(source, name))


def _attributes(descriptor: int) -> list[str]:
    try:
        return os.listxattr(descriptor)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise


class _Descriptor:
    """A descriptor that a `with` block closes."""

    def __init__(self, number: int) -> None:
        self.number = number

    def close(self) -> None:
        os.close(self.number)
