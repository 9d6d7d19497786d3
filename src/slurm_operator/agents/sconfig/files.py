"""A set of files in the shared root: all of them get their new content, or all of them keep the old one.

Other programs, run by root among them, change the same directories at any moment. So nothing is followed that
they could have put there, and a file is never written in place: its new content is complete and on disk under
a temporary name before the two names are exchanged. A fault between any two calls, or the end of the process,
leaves the old file or the new one. What it leaves beside them has a name that the next `sweep` knows.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from slurm_operator.agents.sconfig import paths
from slurm_operator.agents.sconfig.calls import CREATING, DIRECTORY, READING, Calls
from slurm_operator.agents.sconfig.paths import BadPath, Place

FILE_MODE: Final = 0o644
DIRECTORY_MODE: Final = 0o755

# How often a file is put into place when somebody else creates or removes it at the same moment.
_TRIES: Final = 3

# The file system, or an old kernel, has no exchange of two names.
_UNSUPPORTED: Final = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


class Owner(NamedTuple):
    uid: int
    gid: int


@dataclass(frozen=True)
class WantedFile:
    """What a path should hold. Without an owner it belongs to whoever the writer runs as."""

    path: str
    content: bytes = field(repr=False)
    mode: int = FILE_MODE
    owner: Owner | None = None


class Fate(Enum):
    """What became of a file, or would."""

    UNCHANGED = "holds the wanted content and mode already"
    DIFFERS = "has to be written"
    WRITTEN = "holds the wanted content now"
    REFUSED = "is not written: its path is not safe"
    FAILED = "could not be written"
    HELD_BACK = "is not written, because another file of the set could not be"


class Cause(Enum):
    """Why a file was not written."""

    BAD_PATH = "bad path"
    FULL = "full"
    READ_ONLY = "read-only"
    NOT_PERMITTED = "not permitted"
    FAULT = "fault"
    OTHER_FILE = "other file"


@dataclass(frozen=True)
class Result:
    """What became of one file. `is_new` tells which content is there after a failure: the new one if True."""

    path: str
    fate: Fate
    cause: Cause | None = None
    message: str = ""
    is_new: bool = False

    @property
    def is_trouble(self) -> bool:
        return self.fate in (Fate.REFUSED, Fate.FAILED)


class Leftover(NamedTuple):
    """A temporary file: the previous content of one that was written, or what a fault left."""

    directories: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return "/" + "/".join((*self.directories, self.name))


@dataclass(frozen=True)
class Batch:
    """What became of a set. `replaced` are the previous files: keep them while clients may have them open."""

    results: tuple[Result, ...]
    replaced: tuple[Leftover, ...] = ()

    @property
    def is_complete(self) -> bool:
        return all(result.fate in (Fate.UNCHANGED, Fate.WRITTEN) for result in self.results)

    @property
    def changed_anything(self) -> bool:
        return any(result.fate is Fate.WRITTEN or result.is_new for result in self.results)


class Swept(NamedTuple):
    """Temporary files that were removed, and why others were not."""

    removed: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


class _Refused(Exception):  # noqa: N818 - it says what is the case
    """Something in the path is not what it has to be."""


@dataclass
class _Staged:
    """New content under a temporary name, complete and on disk."""

    file: WantedFile
    place: Place
    at: int
    temporary: str
    identity: tuple[int, int]
    has_previous: bool = False
    is_exchanged: bool = False  # The previous file has the temporary name now.


class _Visit:
    """The root while something is done there. Every directory is opened once, and closed at the end."""

    def __init__(self, calls: Calls, root: int, directory_mode: int) -> None:
        self._calls = calls
        self._mode = directory_mode
        self._open: dict[tuple[str, ...], int] = {(): root}

    def directory(self, parts: tuple[str, ...], *, create: bool = False) -> int:
        """Raises FileNotFoundError where there is none, _Refused where something else is in its place."""
        if parts not in self._open:
            try:
                self._open[parts] = self._calls.open_inside("/".join(parts), root=self._open[()])
            except OSError:
                # No such directory, no such call, or a symbolic link: step by step it shows which.
                self._walk(parts, create)
        return self._open[parts]

    def _walk(self, parts: tuple[str, ...], create: bool) -> None:
        for end in range(1, len(parts) + 1):
            if parts[:end] not in self._open:
                self._open[parts[:end]] = self._enter(parts[:end], create)

    def _enter(self, parts: tuple[str, ...], create: bool) -> int:
        name, at = parts[-1], self._open[parts[:-1]]
        try:
            return self._calls.open(name, DIRECTORY, at=at)
        except FileNotFoundError:
            if not create:
                raise
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise _Refused(self._what_is(name, at, "/" + "/".join(parts), "a directory")) from error
            raise
        with contextlib.suppress(FileExistsError):  # Another program made it just now.
            self._calls.make_directory(name, self._mode, at=at)
            _sync_directory(self._calls, at)
        return self._enter(parts, create=False)

    def _what_is(self, name: str, at: int, path: str, wanted: str) -> str:
        found = _kind(self._calls.status(name, at=at).st_mode)
        return f"{path} in the shared root is {found}, not {wanted}"

    def regular(self, place: Place, at: int) -> os.stat_result | None:
        """The file that is there now; None for none. Raises _Refused where something else is."""
        try:
            status = self._calls.status(place.name, at=at)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            raise _Refused(f"{place} in the shared root is {_kind(status.st_mode)}, not a regular file")
        return status

    def close(self) -> None:
        for directory in self._open.values():
            with contextlib.suppress(OSError):  # Nothing was written to it.
                self._calls.close(directory)


class Root:
    """The shared root, as the writer's own pod mounts it."""

    def __init__(
        self, path: str, calls: Calls | None = None, *, directory_mode: int = DIRECTORY_MODE
    ) -> None:
        """The umask of the process takes its part of `directory_mode`."""
        self.path = path
        self._calls = calls or Calls()
        self._directory_mode = directory_mode

    @contextmanager
    def _visit(self) -> Iterator[_Visit]:
        visit = _Visit(self._calls, self._calls.open_root(self.path), self._directory_mode)
        try:
            yield visit
        finally:
            visit.close()

    def look(self, files: Sequence[WantedFile]) -> tuple[Result, ...]:
        """UNCHANGED, DIFFERS, REFUSED or FAILED for each; changes nothing."""
        try:
            with self._visit() as visit:
                return tuple(self._looked(visit, file) for file in files)
        except OSError as error:
            return tuple(_failed(file.path, error) for file in files)

    def write(self, files: Sequence[WantedFile]) -> Batch:
        """All of them, or none: as soon as one cannot be written, the others stay as they are.

        Only where the file system has no exchange, or fails again while the set is put back, can some of
        them be new; `Result.is_new` says which.
        """
        if len({file.path for file in files}) < len(files):
            raise ValueError("a set of files names one path twice")
        try:
            with self._visit() as visit:
                return self._written(visit, files)
        except OSError as error:
            return Batch(tuple(_failed(file.path, error) for file in files))

    def sweep(self, places: Iterable[str]) -> Swept:
        """Remove what interrupted writes left in the directories of these paths."""
        directories = {place.directories for path in places if (place := _place(path)) is not None}
        return self._removed(self._leftovers(directories))

    def discard(self, replaced: Sequence[Leftover]) -> Swept:
        """Remove the previous files of a batch."""
        return self._removed(replaced)

    def _looked(self, visit: _Visit, file: WantedFile) -> Result:
        try:
            place = Place.parse(file.path)
            is_equal = self._is_equal(visit, file, place, visit.directory(place.directories))
        except FileNotFoundError:
            is_equal = False
        except (BadPath, _Refused) as why:
            return _refused(file.path, str(why))
        except OSError as error:
            return _failed(file.path, error)
        return Result(file.path, Fate.UNCHANGED if is_equal else Fate.DIFFERS)

    def _is_equal(self, visit: _Visit, file: WantedFile, place: Place, at: int) -> bool:
        status = visit.regular(place, at)
        if status is None or not _fits(file, status):
            return False
        try:
            opened = self._calls.open(place.name, READING, at=at)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _Refused(f"{place} in the shared root is a symbolic link, not a regular file") from None
            raise
        try:
            return _fits(file, self._calls.status_of(opened)) and self._holds(opened, file.content)
        finally:
            self._calls.close(opened)

    def _holds(self, opened: int, content: bytes) -> bool:
        read = 0
        while piece := self._calls.read(opened, 1 << 20):
            if content[read : read + len(piece)] != piece:
                return False
            read += len(piece)
        return read == len(content)

    def _written(self, visit: _Visit, files: Sequence[WantedFile]) -> Batch:
        looked = [self._looked(visit, file) for file in files]
        if any(result.is_trouble for result in looked):
            return Batch(tuple(held_back(looked)))
        due = [file for file, result in zip(files, looked, strict=True) if result.fate is Fate.DIFFERS]
        staged: list[_Staged] = []
        for file in due:
            try:
                staged.append(self._stage(visit, file))
            except (OSError, _Refused) as why:
                self._drop(staged)
                return Batch(tuple(held_back(_with(looked, [_trouble(file.path, why)]))))
        return self._put_all(visit, staged, looked)

    def _stage(self, visit: _Visit, file: WantedFile) -> _Staged:
        place = Place.parse(file.path)
        at = visit.directory(place.directories, create=True)
        name = paths.temporary(place.name)
        try:
            return _Staged(file, place, at, name, self._filled(file, name, at))
        except OSError:
            self._remove_quietly(name, at)
            raise

    def _filled(self, file: WantedFile, name: str, at: int) -> tuple[int, int]:
        """A new file with this content, on disk; what tells it from all other files."""
        calls = self._calls
        opened = calls.open(name, CREATING, at=at)
        try:
            self._write_whole(opened, file.content)
            if file.owner is not None:
                calls.change_owner(opened, *file.owner)
            calls.change_mode(opened, file.mode)  # After the owner, whose change takes bits away.
            calls.sync(opened)
            identity = _identity(calls.status_of(opened))
        except OSError:
            with contextlib.suppress(OSError):
                calls.close(opened)
            raise
        calls.close(opened)  # A network file system may say only now that there was no space.
        return identity

    def _write_whole(self, opened: int, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            count = self._calls.write(opened, rest)
            if count <= 0:
                raise OSError(errno.EIO, "nothing was written, and no reason given")
            rest = rest[count:]

    def _put_all(self, visit: _Visit, staged: list[_Staged], looked: list[Result]) -> Batch:
        for each in staged:
            try:
                self._put(visit, each)
            except (OSError, _Refused) as why:
                return self._undone(staged, looked, [_trouble(each.file.path, why)])
        try:
            for directory in {each.at: None for each in staged}:
                _sync_directory(self._calls, directory)
        except OSError as why:
            return self._undone(staged, looked, [_trouble(each.file.path, why) for each in staged])
        written = [Result(each.file.path, Fate.WRITTEN, is_new=True) for each in staged]
        replaced = (each for each in staged if each.is_exchanged)
        return Batch(
            tuple(_with(looked, written)),
            tuple(Leftover(each.place.directories, each.temporary) for each in replaced),
        )

    def _put(self, visit: _Visit, staged: _Staged) -> None:
        """Give the new file its name. Somebody else may create or remove the old one at the same moment."""
        calls, at, old, new = self._calls, staged.at, staged.place.name, staged.temporary
        for _ in range(_TRIES):
            staged.has_previous = visit.regular(staged.place, at) is not None
            try:
                if not staged.has_previous:
                    calls.rename_new(new, old, at=at)
                    return
                calls.exchange(new, old, at=at)
            except (FileExistsError, FileNotFoundError):
                continue
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
                calls.rename(new, old, at=at)
                return
            staged.is_exchanged = True
            self._check_replaced(visit, staged)
            return
        raise OSError(errno.EBUSY, "somebody else keeps creating and removing it")

    def _check_replaced(self, visit: _Visit, staged: _Staged) -> None:
        """What was exchanged is a file, and no directory that somebody put there since we looked."""
        place = Place(staged.place.directories, staged.temporary)
        if visit.regular(place, staged.at) is None:
            raise OSError(errno.EBUSY, "somebody else removed its previous content while it was written")

    def _undone(self, staged: list[_Staged], looked: list[Result], troubles: list[Result]) -> Batch:
        """Put the previous files back where that is possible, and say what each path holds."""
        still_new = {each.file.path for each in reversed(staged) if not self._take_back(each)}
        for directory in {each.at: None for each in staged}:
            with contextlib.suppress(OSError):
                _sync_directory(self._calls, directory)
        self._drop([each for each in staged if each.file.path not in still_new])
        results = held_back(_with(looked, troubles))
        return Batch(tuple(_told_new(result) if result.path in still_new else result for result in results))

    def _take_back(self, staged: _Staged) -> bool:
        """Whether the path holds what it held before. A call that failed may have been carried out."""
        calls, at, old, new = self._calls, staged.at, staged.place.name, staged.temporary
        try:
            if not self._is_in_place(staged):
                return True
            if self._exists(new, at):
                calls.exchange(new, old, at=at)
            elif staged.has_previous:
                return False  # It was renamed over, and what it was is nowhere any more.
            else:
                calls.rename(old, new, at=at)
        except OSError:
            with contextlib.suppress(OSError):
                return not self._is_in_place(staged)
            return False
        return True

    def _is_in_place(self, staged: _Staged) -> bool:
        try:
            return _identity(self._calls.status(staged.place.name, at=staged.at)) == staged.identity
        except FileNotFoundError:
            return False

    def _exists(self, name: str, at: int) -> bool:
        try:
            self._calls.status(name, at=at)
        except FileNotFoundError:
            return False
        return True

    def _drop(self, staged: Iterable[_Staged]) -> None:
        """Remove temporary files; what cannot be removed is left to the next sweep."""
        for each in staged:
            self._remove_quietly(each.temporary, each.at)

    def _remove_quietly(self, name: str, at: int) -> None:
        with contextlib.suppress(OSError):
            self._calls.remove(name, at=at)

    def _leftovers(self, directories: Iterable[tuple[str, ...]]) -> list[Leftover]:
        found = []
        with contextlib.suppress(OSError), self._visit() as visit:
            for directory in sorted(directories):
                with contextlib.suppress(OSError, _Refused):
                    names = sorted(self._calls.names(visit.directory(directory)))
                    found += [Leftover(directory, name) for name in names if paths.is_temporary(name)]
        return found

    def _removed(self, leftovers: Sequence[Leftover]) -> Swept:
        removed, troubles = [], []
        if not leftovers:
            return Swept()
        try:
            with self._visit() as visit:
                for leftover in leftovers:
                    try:
                        if self._remove(visit, leftover):
                            removed.append(str(leftover))
                    except (OSError, _Refused) as why:
                        troubles.append(f"{leftover} was not removed: {_reason(why)}")
        except OSError as why:
            troubles.append(f"the shared root cannot be opened: {_reason(why)}")
        return Swept(tuple(removed), tuple(troubles))

    def _remove(self, visit: _Visit, leftover: Leftover) -> bool:
        """Only a regular file is one of ours; whether it was there."""
        try:
            at = visit.directory(leftover.directories)
            if visit.regular(Place(*leftover), at) is None:
                return False
            self._calls.remove(leftover.name, at=at)
        except FileNotFoundError:
            return False
        return True


def _place(path: str) -> Place | None:
    try:
        return Place.parse(path)
    except BadPath:
        return None


def _fits(file: WantedFile, status: os.stat_result) -> bool:
    return (
        stat.S_ISREG(status.st_mode)
        and stat.S_IMODE(status.st_mode) == file.mode
        and status.st_size == len(file.content)
        and (file.owner is None or file.owner == (status.st_uid, status.st_gid))
    )


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _sync_directory(calls: Calls, directory: int) -> None:
    """Some network file systems cannot, and need not."""
    try:
        calls.sync(directory)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise


_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFREG: "a regular file",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "something unknown")


_CAUSES: Final = {
    errno.ENOSPC: Cause.FULL,
    errno.EDQUOT: Cause.FULL,
    errno.EROFS: Cause.READ_ONLY,
    errno.EACCES: Cause.NOT_PERMITTED,
    errno.EPERM: Cause.NOT_PERMITTED,
}

_REMEDIES: Final = {
    Cause.FULL: "Free space on its volume, or enlarge it.",
    Cause.READ_ONLY: "Its volume is mounted read-only, or the file system stopped writes after an error.",
    Cause.NOT_PERMITTED: "Check which user the writer runs as, and who owns the directory.",
    Cause.FAULT: "Check the storage behind the shared root.",
}


def _reason(why: Exception) -> str:
    return (why.strerror or str(why)) if isinstance(why, OSError) else str(why)


def _trouble(path: str, why: Exception) -> Result:
    return _failed(path, why) if isinstance(why, OSError) else _refused(path, str(why))


def _failed(path: str, error: OSError) -> Result:
    cause = _CAUSES.get(error.errno or 0, Cause.FAULT)
    message = f"Cannot write {path}: {_reason(error)}. {_REMEDIES[cause]}"
    return Result(path, Fate.FAILED, cause, message)


def _refused(path: str, why: str) -> Result:
    return Result(path, Fate.REFUSED, Cause.BAD_PATH, f"{why.rstrip('.')}. Nothing is written there.")


def _with(results: list[Result], newer: Iterable[Result]) -> list[Result]:
    by_path = {result.path: result for result in newer}
    return [by_path.get(result.path, result) for result in results]


def held_back(results: Collection[Result]) -> Iterator[Result]:
    """The results of a set in which something went wrong: nothing of it is written."""
    first = next(result for result in results if result.is_trouble)
    message = f"Not written, because {first.path} of the same group could not be."
    for result in results:
        is_due = result.fate is Fate.DIFFERS
        yield Result(result.path, Fate.HELD_BACK, Cause.OTHER_FILE, message) if is_due else result


def _told_new(result: Result) -> Result:
    message = f"{result.message} The path holds the new content, because the old one could not be put back."
    return Result(result.path, Fate.FAILED, result.cause, message, is_new=True)
