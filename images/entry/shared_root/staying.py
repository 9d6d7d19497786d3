"""What of the old root stays when a new content takes its place; decided before anything is changed."""

import os
import stat
from pathlib import Path

from . import accounts, places
from .failure import Failure, Reason
from .journal import NEW, Journal
from .layout import ACCOUNT_FILES, KEPT, MOUNT_POINTS
from .report import Report
from .settings import Settings


def begin(root: int, settings: Settings, identity: str, earlier: Journal | None, report: Report) -> Journal:
    """Decides, before anything is changed, what stays. A run that was stopped has decided already."""
    with places.opened(root, NEW) as new:
        _check_mount_points(root, new, settings)
        spared = _merge_accounts(root, new, report)
    candidates = (*KEPT, *settings.keep)
    kept = earlier.kept if earlier else tuple(path for path in candidates if _is_used(root, path))
    kept += tuple(_mounts_below(settings.root))
    phase = "deleting" if settings.overwrite and settings.delete_others else "moving"
    return Journal(identity, phase, kept, tuple(sorted(set(spared))))


def _merge_accounts(root: int, new: int, report: Report) -> list[str]:
    """Puts the root's accounts into the content; what must not be deleted for them."""
    mine = {name: _text(places.read(root, f"etc/{name}")) for name in ACCOUNT_FILES}
    users = accounts.user_names(mine["passwd"] or "")
    groups = accounts.user_groups(mine["group"] or "")
    for name, text in mine.items():
        if text is None:
            continue
        theirs = _text(places.read(new, f"etc/{name}")) or ""
        names = groups if name in ("group", "gshadow") else users
        merged = accounts.merged(name, text, theirs, names)
        mode, owner = _metadata(new if theirs else root, f"etc/{name}")
        places.write(new, f"etc/{name}", merged.encode(errors="surrogateescape"), mode, owner)
        if name == "passwd":
            for sentence in accounts.shared_numbers(merged):
                report.note(sentence)
    homes = [home for home in accounts.homes(mine["passwd"] or "") if _is_plain(home)]
    files = [f"etc/{name}" for name in ACCOUNT_FILES]
    # A home that the image has too is the image's business: /usr is nobody's home, whatever passwd says.
    return [*files, *(home for home in homes if places.lookup(new, home) is None)]


def _metadata(root: int, path: str) -> tuple[int, tuple[int, int]]:
    directory, _, name = path.rpartition("/")
    with places.opened(root, directory) as descriptor:
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    return stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)


def _check_mount_points(root: int, new: int, settings: Settings) -> None:
    """Raises Failure for a mount point behind a link that the new content does not replace by a directory."""
    for path in (*MOUNT_POINTS, *settings.mount_points):
        names = places.parts(path)
        for depth in range(1, len(names) + 1):
            above = "/".join(names[:depth])
            kind, theirs = places.lookup(root, above), places.lookup(new, above)
            if theirs is not None and not stat.S_ISDIR(theirs):
                raise Failure(
                    Reason.BROKEN_SOURCE,
                    f"/{above} of the content is not a directory, but /{path} is mounted there.",
                )
            if kind is None or (theirs is not None and not stat.S_ISDIR(kind)):
                break
            if not stat.S_ISDIR(kind):
                raise Failure(
                    Reason.UNSAFE_ROOT,
                    f"/{above} in the root is a link or a file, but pods mount something at /{path}. "
                    "Replace it by a directory; nothing was changed.",
                )


def _mounts_below(root: Path) -> list[str]:
    """Volumes that are mounted inside the root are not its content."""
    prefix = f"{root}/"
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return [point.removeprefix(prefix) for point in points if point.startswith(prefix)]


def _is_used(root: int, path: str) -> bool:
    """Whether somebody has put something there; an empty directory may be filled."""
    kind = places.lookup(root, path)
    if kind is None or not stat.S_ISDIR(kind):
        return kind is not None
    with places.opened(root, path) as directory, os.scandir(directory) as entries:
        return any(True for _ in entries)


def _is_plain(path: str) -> bool:
    return bool(path) and not {".", ".."} & set(path.split("/"))


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="surrogateescape")
