"""Why the root could not be populated, as one word for programs and a sentence for people."""

import errno
from collections.abc import Mapping
from enum import StrEnum


class Reason(StrEnum):
    """The word in the termination message."""

    OUT_OF_SPACE = "OutOfSpace"
    READ_ONLY = "ReadOnly"
    NO_LOCKS = "NoLocks"
    NO_EXTENDED_ATTRIBUTES = "NoExtendedAttributes"
    NOT_PERMITTED = "NotPermitted"
    NOT_MOUNTED = "NotMounted"
    NO_SOURCE = "NoSource"
    BROKEN_SOURCE = "BrokenSource"
    UNSAFE_ROOT = "UnsafeRoot"
    UNKNOWN_CONTENT = "UnknownContent"
    BUSY = "Busy"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    INTERRUPTED = "Interrupted"
    WRONG_SETTING = "WrongSetting"
    FILE_SYSTEM = "FileSystem"


class Failure(Exception):  # noqa: N818
    """The root is as complete as it was before, or has no marker."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


_REASONS: Mapping[int, Reason] = {
    errno.ENOSPC: Reason.OUT_OF_SPACE,
    errno.EDQUOT: Reason.OUT_OF_SPACE,
    errno.EROFS: Reason.READ_ONLY,
    errno.EPERM: Reason.NOT_PERMITTED,
    errno.EACCES: Reason.NOT_PERMITTED,
    errno.ENOTSUP: Reason.FILE_SYSTEM,
}

# What other programs print for the same errors; they run with LC_ALL=C.
_SAID: Mapping[str, Reason] = {
    "No space left on device": Reason.OUT_OF_SPACE,
    "no space left on device": Reason.OUT_OF_SPACE,
    "Disk quota exceeded": Reason.OUT_OF_SPACE,
    "Read-only file system": Reason.READ_ONLY,
    "read-only file system": Reason.READ_ONLY,
    "Input/output error": Reason.FILE_SYSTEM,
    "Operation not permitted": Reason.NOT_PERMITTED,
    "Permission denied": Reason.NOT_PERMITTED,
}


def from_error(error: OSError, doing: str) -> Failure:
    """The failure that an error of the operating system means."""
    reason = _REASONS.get(error.errno or 0, Reason.FILE_SYSTEM)
    path = f" ({error.filename})" if error.filename else ""
    return Failure(reason, f"{doing}: {error.strerror or error}{path}.")


def from_output(said: str, doing: str, otherwise: Reason) -> Failure:
    """The failure that a program's complaints mean."""
    reason = next((reason for words, reason in _SAID.items() if words in said), otherwise)
    lines = [line for line in said.splitlines() if line.strip()]
    return Failure(reason, f"{doing}: {'; '.join(lines[:3]) or 'it gave no reason'}.")
