"""Fills a shared root from a source, or replaces the system in it; runs in a Job.

The new content is unpacked beside the old one, on the same volume. Until all of it is there the old root
stays complete, so a full volume or a broken archive costs nothing. Then a journal says that the root is being
changed, the marker is removed, the content is moved in, and the marker is written. Whatever ends this
program, the next run finds by marker and journal where to go on:

    marker              the root is complete
    journal, no marker  the root is being changed: go on with what is left of the unpacked content
    neither             nobody has populated it
"""

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from types import FrameType
from typing import NoReturn

from . import places
from .failure import Failure, Reason, from_error
from .finishing import finish, give_root_a_key
from .journal import NEW, STAGED, read_journal, remove_work, write_journal
from .layout import HOST_KEYS, LOCK, MARKER, OLD_MARKER, REPLACED, WORK
from .locking import locked
from .marker import Marker, now, read_marker, write_marker
from .report import Report
from .settings import Settings
from .sources import find_source
from .staging import has_shell, stage, sync
from .staying import begin
from .trees import Rules, delete_others, move_in

_OURS = (MARKER, OLD_MARKER, LOCK, WORK, REPLACED)

_POLL_S = 2.0
_PATIENCE_S = 600.0


def main(environment: Mapping[str, str]) -> int:
    """The Job's exit code; the termination message says the rest."""
    report = Report()
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        settings = Settings.read(environment)
        report.deadline_s = settings.deadline_s
        result = populate(settings, report)
    except Failure as failure:
        report.end(
            {"result": "Failed", "reason": failure.reason, "phase": report.phase, "message": failure.message}
        )
        return 1
    report.end(result)
    return 0


def populate(settings: Settings, report: Report) -> dict[str, object]:
    """What was done. Raises Failure; the root then is as complete as before, or has no marker."""
    try:
        _wait_for_mount(settings, report)
        root = os.open(settings.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with locked(root, report):
                return _populate(root, settings, report)
        finally:
            os.close(root)
    except OSError as error:
        raise from_error(error, f"Cannot populate {settings.root} ({report.phase})") from error


def _populate(root: int, settings: Settings, report: Report) -> dict[str, object]:
    marker = read_marker(root)
    is_answered = marker is not None and marker.request == settings.request != ""
    if marker is not None and (not settings.overwrite or is_answered):
        report.enter("Tidying")
        finish(root, settings, report)
        remove_work(root)
        return {"result": "AlreadyPopulated", **asdict(marker)}
    if (
        not settings.overwrite
        and read_journal(root) is None
        and (adopted := _adopted(root, settings, report))
    ):
        return {"result": "Adopted", **asdict(adopted)}
    source = find_source(settings.source)
    report.enter("Identifying")
    identity = settings.identity or source.identity(report)
    stage(root, source, identity, report)
    _merge(root, settings, identity, report)
    report.enter("Finishing")
    finish(root, settings, report)
    give_root_a_key(root, report)
    sync(root)
    marker = Marker(source.name, identity, settings.request, now())
    write_marker(root, marker)
    remove_work(root)
    return {"result": "Populated", **asdict(marker)}


def _adopted(root: int, settings: Settings, report: Report) -> Marker | None:
    """The marker of a root of an older release, which has another marker or, older still, none."""
    has_old_marker = places.lookup(root, OLD_MARKER) is not None
    if not has_old_marker and not (places.lookup(root, "dev") and places.lookup(root, "usr")):
        return None
    if not has_shell(root):
        raise Failure(
            Reason.UNKNOWN_CONTENT,
            f"{settings.root} has files but neither a marker nor a /bin/sh, so nobody can tell what it is. "
            "Nothing was changed. To put a new system in it and keep homes and accounts, populate with "
            "overwrite.",
        )
    report.enter("Adopting")
    finish(root, settings, report)
    marker = Marker(source="another program", populated=now())
    write_marker(root, marker)
    places.remove(root, OLD_MARKER)
    return marker


def _merge(root: int, settings: Settings, identity: str, report: Report) -> None:
    """Goes on where the journal says. The root has no marker from here on."""
    report.enter("Replacing")
    journal = read_journal(root)
    if journal is None or journal.identity != identity:
        journal = begin(root, settings, identity, journal, report)
        write_journal(root, journal)
    places.remove(root, MARKER)
    places.remove(root, OLD_MARKER)
    kept = frozenset(journal.kept)
    rules = Rules(kept | set(_OURS), (HOST_KEYS,), frozenset(journal.spared))
    with places.opened(root, NEW) as new:
        if journal.phase == "deleting":
            delete_others(new, root, rules, report.tick)
            journal = replace(journal, phase="moving")
            write_journal(root, journal)
        places.remove(root, STAGED)  # From here on it is not whole.
        move_in(new, root, rules, _Aside(root, report), report.tick)


class _Aside:
    """Puts a directory of the root away, where a file of the content takes its place."""

    def __init__(self, root: int, report: Report) -> None:
        self._root = root
        self._report = report

    def __call__(self, directory: int, name: str, path: str) -> None:
        places.make_directory(self._root, REPLACED, 0o700)
        with places.opened(self._root, REPLACED) as put:
            place = f"{path.replace('/', '-')}.{time.time_ns()}"
            os.rename(name, place, src_dir_fd=directory, dst_dir_fd=put)
        self._report.note(
            f"The directory /{path} is a file in the new content; it is now /{REPLACED}/{place}."
        )


def _wait_for_mount(settings: Settings, report: Report) -> None:
    report.enter("Waiting")
    while not settings.root.is_dir() or (settings.must_be_mounted and not os.path.ismount(settings.root)):
        if report.deadline_s is None and time.monotonic() - report.started > _PATIENCE_S:
            raise Failure(
                Reason.NOT_MOUNTED,
                f"{settings.root} is not a mounted directory; waited for {_PATIENCE_S:g} s.",
            )
        report.tick(waiting_for=f"{settings.root} to be mounted")
        time.sleep(_POLL_S)


def _interrupted(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Failure(Reason.INTERRUPTED, "Asked to end before the root was complete. The next run continues.")
