"""The new content, unpacked on the root's own volume beside the old one."""

import ctypes
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from . import places
from .failure import Failure, Reason
from .journal import NEW, STAGED, read_journal, remove_tree, write_journal
from .layout import GPU_FLAG, LOCK, MARKER, NODE_LINKS, OLD_MARKER, REPLACED, WORK
from .report import Report
from .sources import Source


def stage(root: int, source: Source, identity: str, report: Report) -> None:
    """Unpacks the content, unless an earlier run did or has already begun to move it in."""
    report.enter("Unpacking")
    journal = read_journal(root)
    if places.read(root, STAGED) == identity.encode() or (journal and journal.identity == identity):
        return
    places.make_directory(root, WORK, 0o700)
    if journal:
        # What that run had unpacked is about to be removed; only what it has decided to keep still counts.
        write_journal(root, replace(journal, identity=""))
    places.remove(root, STAGED)
    remove_tree(root, NEW)
    places.make_directory(root, NEW, 0o755)
    try:
        with places.opened(root, NEW) as new:
            source.unpack(Path(f"/proc/{os.getpid()}/fd/{new}"), report)
            report.enter("Preparing")
            _prepare(new)
            sync(root)
    except (Failure, OSError):
        # Users of the old root need the space, and half a content is of no use.
        with suppress(OSError):
            remove_tree(root, NEW)
        raise
    places.write(root, STAGED, identity.encode(), 0o600)


def _prepare(new: int) -> None:
    """Takes out what says that a root is complete, and links what each node has for its own."""
    if not has_shell(new):
        raise Failure(Reason.BROKEN_SOURCE, "The content has no /bin/sh, so it is not the root of a system.")
    for path in (MARKER, OLD_MARKER, LOCK, GPU_FLAG):
        places.remove(new, path)
    for path in (WORK, REPLACED):
        remove_tree(new, path)
    places.make_directory(new, "etc", 0o755)
    for path, target in NODE_LINKS.items():
        places.remove(new, path)
        with places.opened(new, "etc") as etc:
            os.symlink(target, path.removeprefix("etc/"), dir_fd=etc)


def has_shell(root: int) -> bool:
    return any(places.lookup(root, path) is not None for path in ("usr/bin/sh", "bin/sh"))


def sync(root: int) -> None:
    """Everything on the root's file system is on its disk."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(root) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
