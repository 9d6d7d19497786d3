"""Files below a directory, reached without following any link."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .failure import Failure, Reason

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def parts(path: str) -> list[str]:
    """The names in a path; raises Failure for one that leads upwards."""
    names = [name for name in path.split("/") if name]
    if not names or any(name in (".", "..") for name in names):
        raise Failure(Reason.WRONG_SETTING, f"{path!r} is not a plain path below the root.")
    return names


@contextmanager
def opened(root: int, path: str = "") -> Iterator[int]:
    """A descriptor of a directory. Raises FileNotFoundError, or Failure where a link is in the way."""
    descriptor = os.dup(root)
    try:
        for name in parts(path) if path else []:
            below = enter(descriptor, name, path)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def enter(directory: int, name: str, path: str) -> int:
    """A descriptor of a directory in a directory; `path` is what the message calls it."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Failure(
                Reason.UNSAFE_ROOT,
                f"/{path} in the root cannot be used: {name!r} in it is a link or a file, not a directory. "
                "Replace it by a directory, then run this again.",
            ) from error
        raise


def kind_of(directory: int, name: str) -> int | None:
    """The type bits of an entry, of a link itself; None when there is no such entry."""
    with suppress(FileNotFoundError):
        return stat.S_IFMT(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    return None


def lookup(root: int, path: str) -> int | None:
    """The same for a path; None also when a link or a file is in the way."""
    *above, name = parts(path)
    try:
        with opened(root, "/".join(above)) as directory:
            return kind_of(directory, name)
    except (FileNotFoundError, Failure):
        return None


def make_directory(root: int, path: str, mode: int) -> None:
    """A directory and what is above it. One that is there keeps its owner; its mode becomes `mode`."""
    with suppress(FileExistsError):
        _make(root, path)
    with opened(root, path) as directory:
        if stat.S_IMODE(os.fstat(directory).st_mode) != mode:
            os.fchmod(directory, mode)


def _make(root: int, path: str) -> None:
    *above, name = parts(path)
    for depth in range(1, len(above) + 1):
        *parents, directory = above[:depth]
        with opened(root, "/".join(parents)) as parent, suppress(FileExistsError):
            os.mkdir(directory, 0o755, dir_fd=parent)
    with opened(root, "/".join(above)) as parent:
        os.mkdir(name, 0o755, dir_fd=parent)


def read(root: int, path: str) -> bytes | None:
    """A regular file's content; None when there is none. Raises Failure where a link is in the way."""
    *above, name = parts(path)
    try:
        with opened(root, "/".join(above)) as directory:
            # Not blocking: whoever owns the root may have put a pipe there.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_a_file(path) from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _not_a_file(path)
        return file.read()


def write(root: int, path: str, content: bytes, mode: int = 0o644, owner: tuple[int, int] = (0, 0)) -> None:
    """A file with new content, there as a whole or not at all, also after a crash of the machine."""
    *above, name = parts(path)
    with opened(root, "/".join(above)) as directory:
        temporary = f".{name}.slurm-operator-new"
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=directory), "wb") as file:
            file.write(content)
            file.flush()
            os.chown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)


def remove(root: int, path: str) -> bool:
    """Whether a file or link was there; it is not any more, also after a crash of the machine."""
    *above, name = parts(path)
    try:
        with opened(root, "/".join(above)) as directory:
            os.unlink(name, dir_fd=directory)
            os.fsync(directory)
    except FileNotFoundError:
        return False
    return True


def _not_a_file(path: str) -> Failure:
    return Failure(Reason.UNSAFE_ROOT, f"/{path} in the root is not a regular file. Replace it by one.")
