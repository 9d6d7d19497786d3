"""The file calls that the writer makes, one method each, so that a test can have any of them fail.

Every name is relative to an open directory and has no slash in it, except in `open_inside`. So nothing that
somebody else moves or replaces in the meantime leads out of the directory that was opened.
"""

import ctypes
import errno
import os
import struct
from functools import cache
from typing import Final

# From linux/openat2.h. The number of the call is the same on every architecture.
_OPENAT2: Final = 437
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RESOLVE_IN_ROOT: Final = 0x10

# From linux/fs.h.
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2

DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, a pipe that somebody put there would keep us waiting for its other end.
READING: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATING: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Calls:
    """The kernel's own. Each raises OSError."""

    def open_root(self, path: str) -> int:
        """A directory of our own pod, by any path."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def open_inside(self, path: str, *, root: int) -> int:
        """A directory below `root`, by a path that must not contain a symbolic link."""
        how = struct.pack("=QQQ", DIRECTORY, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_SYMLINKS)
        arguments = (ctypes.c_int(root), ctypes.c_char_p(os.fsencode(path)), ctypes.c_char_p(how))
        return _checked(_libc().syscall(ctypes.c_long(_OPENAT2), *arguments, ctypes.c_size_t(len(how))), path)

    def open(self, name: str, flags: int, *, at: int) -> int:
        return os.open(name, flags, 0o600, dir_fd=at)

    def make_directory(self, name: str, mode: int, *, at: int) -> None:
        os.mkdir(name, mode, dir_fd=at)

    def names(self, directory: int) -> list[str]:
        return os.listdir(directory)

    def status(self, name: str, *, at: int) -> os.stat_result:
        """Of the name, also where it is a symbolic link."""
        return os.stat(name, dir_fd=at, follow_symlinks=False)

    def status_of(self, file: int) -> os.stat_result:
        return os.fstat(file)

    def read(self, file: int, size: int) -> bytes:
        return os.read(file, size)

    def write(self, file: int, data: memoryview) -> int:
        return os.write(file, data)

    def change_mode(self, file: int, mode: int) -> None:
        os.fchmod(file, mode)

    def change_owner(self, file: int, uid: int, gid: int) -> None:
        os.fchown(file, uid, gid)

    def sync(self, file: int) -> None:
        os.fsync(file)

    def close(self, file: int) -> None:
        os.close(file)

    def exchange(self, one: str, other: str, *, at: int) -> None:
        """Both names exist before and after. EINVAL or ENOSYS where the file system cannot."""
        _rename(one, other, _RENAME_EXCHANGE, at)

    def rename_new(self, old: str, new: str, *, at: int) -> None:
        """EEXIST if `new` exists; EINVAL or ENOSYS where the file system cannot tell."""
        _rename(old, new, _RENAME_NOREPLACE, at)

    def rename(self, old: str, new: str, *, at: int) -> None:
        os.rename(old, new, src_dir_fd=at, dst_dir_fd=at)

    def remove(self, name: str, *, at: int) -> None:
        os.unlink(name, dir_fd=at)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _rename(old: str, new: str, flags: int, at: int) -> None:
    call = getattr(_libc(), "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), new)
    place = ctypes.c_int(at)
    names = ctypes.c_char_p(os.fsencode(old)), ctypes.c_char_p(os.fsencode(new))
    _checked(call(place, names[0], place, names[1], ctypes.c_uint(flags)), new)


def _checked(answer: int, name: str) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return answer
