"""Paths inside the shared root, and the names that the writer keeps for itself."""

import re
import secrets
from typing import Final, NamedTuple

# Soperator's writer names its temporary files in the same way: what it left behind is recognised too.
_MARK: Final = "-sconfigcontroller-"
_TEMPORARY: Final = re.compile(rf".+{_MARK}[0-9a-f]+", re.DOTALL)

_LONGEST_NAME_BYTES: Final = 255
_LONGEST_PATH_BYTES: Final = 4095
# What is left of a long name beside the mark and its number.
_LONGEST_START_BYTES: Final = 200


class BadPath(ValueError):  # noqa: N818 - it says what is the case
    """A path that no file may have, and why."""


class Place(NamedTuple):
    """A file inside the root: the directories down to it, and its name there."""

    directories: tuple[str, ...]
    name: str

    @classmethod
    def parse(cls, path: str) -> "Place":
        """`/etc/slurm/slurm.conf`. Raises BadPath."""
        if not path.startswith("/"):
            raise BadPath(f"{path!r} is not absolute. Paths start with / and are inside the shared root.")
        if path.endswith(("/", "/.")):
            raise BadPath(f"{path!r} names a directory, not a file.")
        parts = tuple(part for part in path.split("/") if part not in ("", "."))
        if ".." in parts:
            raise BadPath(f"{path!r} contains `..`, which is not allowed.")
        if "\0" in path:
            raise BadPath(f"{path!r} contains a NUL character.")
        _check_lengths(path, parts)
        if is_temporary(parts[-1]):
            raise BadPath(f"{path!r} looks like a temporary file of the writer ({_MARK}…); use another name.")
        return cls(parts[:-1], parts[-1])

    @property
    def directory(self) -> str:
        return "/" + "/".join(self.directories)

    def __str__(self) -> str:
        return "/" + "/".join((*self.directories, self.name))


def _check_lengths(path: str, parts: tuple[str, ...]) -> None:
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError as error:
        raise BadPath(f"{path!r} cannot be a file name: {error.reason}.") from error
    if max(sizes) > _LONGEST_NAME_BYTES or sum(sizes) + len(sizes) > _LONGEST_PATH_BYTES:
        raise BadPath(f"{path[:80]!r}… is longer than a file system allows.")


def temporary(name: str) -> str:
    """A new name beside `name`, which nobody else has."""
    start = name.encode()[:_LONGEST_START_BYTES].decode(errors="ignore")
    return f"{start}{_MARK}{secrets.token_hex(8)}"


def is_temporary(name: str) -> bool:
    return _TEMPORARY.fullmatch(name) is not None
