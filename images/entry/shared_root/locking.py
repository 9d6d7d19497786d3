"""One program at a time changes a root."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .failure import Failure, Reason
from .layout import LOCK
from .report import Report

_POLL_S = 2.0


@contextmanager
def locked(root: int, report: Report) -> Iterator[None]:
    """Two Jobs of one root, or of two clusters on it, take turns."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(LOCK, flags, 0o600, dir_fd=root)
    try:
        _take(lock, report)
        while not _is_current(lock, root):  # The one before us has removed it.
            os.close(lock)
            lock = os.open(LOCK, flags, 0o600, dir_fd=root)
            _take(lock, report)
        try:
            yield
        finally:
            with suppress(OSError):  # On a volume that turned read-only the file stays, and means nothing.
                os.unlink(LOCK, dir_fd=root)
    finally:
        os.close(lock)


def _is_current(lock: int, root: int) -> bool:
    try:
        return os.path.samestat(os.stat(LOCK, dir_fd=root, follow_symlinks=False), os.fstat(lock))
    except FileNotFoundError:
        return False


def _take(lock: int, report: Report) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report.tick(waiting_for="another Job that populates this root")
            time.sleep(_POLL_S)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
                raise
            raise Failure(
                Reason.NO_LOCKS,
                f"The volume does not support flock ({error.strerror}), which keeps Jobs and pods from "
                "changing the root at once. Mount it with locking, or use another file system.",
            ) from error
        else:
            return
