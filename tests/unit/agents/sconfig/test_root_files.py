"""Writing a set of files into a root that other people have their hands in."""

import contextlib
import errno
import itertools
import os
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty_calls import FaultyCalls, Killed, WithoutExchange, WithoutOpenat2
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator.agents.sconfig.calls import Calls
from slurm_operator.agents.sconfig.files import Cause, Fate, Owner, Root, WantedFile
from slurm_operator.agents.sconfig.paths import BadPath, Place, is_temporary, temporary

KERNELS = [
    pytest.param(Calls, id="openat2 and exchange"),
    pytest.param(WithoutOpenat2, id="no openat2"),
    pytest.param(WithoutExchange, id="no exchange"),
]

# An existing file with new content, one with a new mode alone, one that is right already, and two new ones.
OLD = {
    "/etc/slurm/slurm.conf": (b"old\n", 0o644),
    "/etc/slurm/gres.conf": (b"gres\n", 0o600),
    "/etc/slurm/cgroup.conf": (b"cgroup\n", 0o644),
}
NEW = {
    "/etc/slurm/slurm.conf": (b"new and longer\n", 0o644),
    "/etc/slurm/gres.conf": (b"gres\n", 0o644),
    "/etc/slurm/cgroup.conf": (b"cgroup\n", 0o644),
    "/etc/slurm/topology.conf": (b"", 0o644),
    "/opt/scripts/prolog.sh": (b"#!/bin/sh\n", 0o755),
}

Content = dict[str, tuple[bytes, int]]


def wanted(content: Content = NEW) -> list[WantedFile]:
    return [WantedFile(path, data, mode) for path, (data, mode) in content.items()]


def fill(root: Path, content: Content) -> None:
    for path, (data, mode) in content.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode)


def held(root: Path) -> Content:
    """Every regular file that is no temporary one."""
    return {
        "/" + str(file.relative_to(root)): (file.read_bytes(), stat.S_IMODE(file.stat().st_mode))
        for file in root.rglob("*")
        if file.is_file() and not file.is_symlink() and not is_temporary(file.name)
    }


def leftovers(root: Path) -> list[str]:
    return [file.name for file in root.rglob("*") if is_temporary(file.name)]


def fates(results) -> dict[str, Fate]:
    return {result.path: result.fate for result in results}


IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: thousands of files are written to the last byte here."""
    if not os.access(IN_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as place:
        yield Path(place)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    place.mkdir()
    return place


@pytest.mark.parametrize("calls", KERNELS)
def test_a_set_is_written_with_its_modes_and_the_directories_it_needs(root, calls):
    fill(root, OLD)

    batch = Root(str(root), calls()).write(wanted())

    assert batch.is_complete
    assert held(root) == NEW
    assert stat.S_IMODE((root / "opt/scripts").stat().st_mode) == 0o755
    assert fates(batch.results) == {
        path: Fate.UNCHANGED if path.endswith("cgroup.conf") else Fate.WRITTEN for path in NEW
    }


@pytest.mark.parametrize("calls", KERNELS)
def test_what_is_equal_is_not_touched_at_all(root, calls):
    fill(root, NEW)
    before = {
        file: (file.stat().st_ino, file.stat().st_mtime_ns, file.stat().st_ctime_ns)
        for file in root.rglob("*")
    }
    watched = FaultyCalls(calls(), 10**9, errno.EIO)

    batch = Root(str(root), watched).write(wanted())

    assert set(fates(batch.results).values()) == {Fate.UNCHANGED}
    assert not batch.changed_anything
    assert {
        file: (file.stat().st_ino, file.stat().st_mtime_ns, file.stat().st_ctime_ns)
        for file in root.rglob("*")
    } == before
    assert not {"write", "exchange", "rename", "rename_new", "make_directory", "sync"} & set(watched.log)


def test_looking_changes_nothing_and_tells_what_a_write_would_do(root):
    fill(root, OLD)

    looked = Root(str(root)).look(wanted())

    assert held(root) == OLD
    assert not (root / "opt").exists()
    assert [result.fate for result in looked] == [
        Fate.DIFFERS,
        Fate.DIFFERS,
        Fate.UNCHANGED,
        Fate.DIFFERS,
        Fate.DIFFERS,
    ]


def test_the_previous_files_are_kept_until_they_are_discarded(root):
    """Clients of a network file system may have the old file open under a name that they cached."""
    fill(root, OLD)
    place = Root(str(root))

    batch = place.write(wanted())
    kept = sorted((root / str(leftover).lstrip("/")).read_bytes() for leftover in batch.replaced)
    swept = place.discard(batch.replaced)

    assert kept == [b"gres\n", b"old\n"]
    assert (len(swept.removed), swept.troubles) == (2, ())
    assert leftovers(root) == []
    assert held(root) == NEW


def test_content_is_on_disk_before_its_name_and_the_name_before_success(root):
    fill(root, {"/a": (b"old", 0o644)})
    calls = FaultyCalls(Calls(), 10**9, errno.EIO)

    Root(str(root), calls).write([WantedFile("/a", b"new")])

    order = [name for name in calls.log if name in ("write", "change_mode", "sync", "exchange")]
    assert order == ["write", "change_mode", "sync", "exchange", "sync"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_an_owner_that_is_asked_for_is_part_of_what_is_wanted(root):
    file = WantedFile("/etc/munge.key", b"x", 0o400, Owner(401, 402))

    first, second = Root(str(root)).write([file]), Root(str(root)).write([file])

    status = (root / "etc/munge.key").stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (401, 402, 0o400)
    assert (first.results[0].fate, second.results[0].fate) == (Fate.WRITTEN, Fate.UNCHANGED)


def test_one_path_twice_in_a_set_is_a_mistake_of_the_caller(root):
    with pytest.raises(ValueError, match="one path twice"):
        Root(str(root)).write([WantedFile("/a", b"1"), WantedFile("/a", b"2")])


def _link(root: Path) -> None:
    (root / "etc").mkdir()
    (root / "etc/slurm").symlink_to(root.parent / "outside")


def _link_inside(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "etc").mkdir()
    (root / "etc/slurm").symlink_to("/elsewhere")


def _file_link(root: Path) -> None:
    (root / "etc/slurm").mkdir(parents=True)
    (root / "etc/slurm/slurm.conf").symlink_to(root.parent / "outside/slurm.conf")


def _file_for_directory(root: Path) -> None:
    (root / "etc").mkdir()
    (root / "etc/slurm").write_bytes(b"")


def _directory_for_file(root: Path) -> None:
    (root / "etc/slurm/slurm.conf").mkdir(parents=True)


def _pipe(root: Path) -> None:
    (root / "etc/slurm").mkdir(parents=True)
    os.mkfifo(root / "etc/slurm/slurm.conf")


@pytest.mark.parametrize("calls", KERNELS)
@pytest.mark.parametrize(
    ("prepare", "what"),
    [
        pytest.param(
            _link,
            "/etc/slurm in the shared root is a symbolic link, not a directory",
            id="link out of the root",
        ),
        pytest.param(
            _link_inside,
            "/etc/slurm in the shared root is a symbolic link, not a directory",
            id="link inside the root",
        ),
        pytest.param(
            _file_link, "/etc/slurm/slurm.conf in the shared root is a symbolic link", id="the file is a link"
        ),
        pytest.param(
            _file_for_directory,
            "/etc/slurm in the shared root is a regular file, not a directory",
            id="file for directory",
        ),
        pytest.param(
            _directory_for_file, "slurm.conf in the shared root is a directory", id="directory for file"
        ),
        pytest.param(_pipe, "slurm.conf in the shared root is a named pipe", id="pipe"),
    ],
)
def test_what_is_in_the_way_is_named_and_holds_up_the_set(root, calls, prepare, what):
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "slurm.conf").write_bytes(b"precious")
    prepare(root)
    files = [WantedFile("/etc/slurm/slurm.conf", b"new"), WantedFile("/opt/other", b"new")]

    batch = Root(str(root), calls()).write(files)

    refused, other = batch.results
    assert (refused.fate, refused.cause, other.fate) == (Fate.REFUSED, Cause.BAD_PATH, Fate.HELD_BACK)
    assert what in refused.message
    assert other.message == "Not written, because /etc/slurm/slurm.conf of the same group could not be."
    assert (outside / "slurm.conf").read_bytes() == b"precious"
    assert not (root / "opt").exists()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("etc/slurm.conf", "not absolute"),
        ("", "not absolute"),
        ("/etc/../../shadow", "contains `..`"),
        ("/..", "contains `..`"),
        ("/", "names a directory"),
        ("/etc/slurm/", "names a directory"),
        ("/etc/.", "names a directory"),
        ("/etc/a\0b", "NUL"),
        ("/" + "x" * 256, "longer than"),
        ("/x" * 2100, "longer than"),
        ("/etc/\ud800", "cannot be a file name"),
        ("/etc/slurm.conf-sconfigcontroller-12345", "temporary file of the writer"),
    ],
)
def test_paths_that_no_file_may_have(root, path, why):
    with pytest.raises(BadPath, match=why):
        Place.parse(path)

    assert Root(str(root)).write([WantedFile(path, b"")]).results[0].fate is Fate.REFUSED


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/a", ((), "a")),
        ("//etc/./slurm//a.conf", (("etc", "slurm"), "a.conf")),
        ("/etc/..a/...", (("etc", "..a"), "...")),
    ],
)
def test_paths_are_read_as_the_kernel_reads_them(path, place):
    assert Place.parse(path) == place


def test_the_longest_name_has_a_temporary_one_beside_it(root):
    name = "ü" * 127

    batch = Root(str(root)).write([WantedFile(f"/{name}", b"x")])

    assert batch.is_complete
    assert len(temporary(name).encode()) <= 255
    assert is_temporary(temporary(name))


def test_a_root_that_is_not_there_fails_every_file(root):
    batch = Root(str(root / "missing")).write(wanted())

    assert set(fates(batch.results).values()) == {Fate.FAILED}
    assert "No such file or directory" in batch.results[0].message


# Faults, one at every call in turn.


def runs(real: type[Calls], fault, *, after: bool = False, lasting: bool = False):
    """A fault at the first call, at the second, and so on, until a write is over before it happens."""
    for number in itertools.count():
        calls = FaultyCalls(real(), number, fault, after=after, lasting=lasting)
        yield calls
        if not calls.happened:
            assert number > 40, "a write of five files has more calls"
            return


def check_each_is_old_or_new(root: Path) -> None:
    now = held(root)
    for path, new in NEW.items():
        assert now.get(path) in (OLD.get(path), new), path
    assert set(now) <= set(NEW)


def check_the_next_run_completes_it(root: Path, real: type[Calls]) -> None:
    place = Root(str(root), real())
    place.sweep(NEW)
    assert leftovers(root) == []
    batch = place.write(wanted())
    place.discard(batch.replaced)
    assert batch.is_complete
    assert held(root) == NEW
    assert leftovers(root) == []


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


FAULTS = [errno.ENOSPC, errno.EROFS, errno.EIO]


@pytest.mark.parametrize("real", KERNELS)
@pytest.mark.parametrize("fault", FAULTS, ids=errno.errorcode.get)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_a_fault_at_any_call_leaves_old_or_new_and_says_which(tmp_path, real, fault, after, lasting):
    files = open_files()
    for calls in runs(real, fault, after=after, lasting=lasting):
        root = tmp_path / str(calls.number)
        fill(root, OLD)

        batch = Root(str(root), calls).write(wanted())

        check_each_is_old_or_new(root)
        now = held(root)
        for result in batch.results:
            if result.fate in (Fate.WRITTEN, Fate.UNCHANGED) or result.is_new:
                assert now[result.path] == NEW[result.path], result
            else:
                assert now.get(result.path) == OLD.get(result.path), result
                assert result.message
        if not lasting and real is not WithoutExchange:
            assert now == (NEW if batch.is_complete else OLD), (
                "a single fault leaves the whole set old or new"
            )
        check_the_next_run_completes_it(root, real)
    assert open_files() == files


@pytest.mark.parametrize("real", KERNELS)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_any_call_leaves_old_or_new_for_each_path(tmp_path, real, after):
    for calls in runs(real, Killed, after=after):
        root = tmp_path / str(calls.number)
        fill(root, OLD)

        try:
            Root(str(root), calls).write(wanted())
        except Killed:
            pass
        else:
            assert not calls.happened

        check_each_is_old_or_new(root)
        check_the_next_run_completes_it(root, real)


@pytest.mark.parametrize("fault", [errno.EIO, Killed], ids=["EIO", "kill"])
def test_a_fault_while_the_previous_files_are_discarded_harms_no_file(tmp_path, fault):
    for number in itertools.count():
        root = tmp_path / str(number)
        fill(root, OLD)
        batch = Root(str(root)).write(wanted())
        calls = FaultyCalls(Calls(), number, fault)

        try:
            swept = Root(str(root), calls).discard(batch.replaced)
        except Killed:
            pass
        else:
            assert len(swept.removed) == 2 or swept.troubles

        assert held(root) == NEW
        check_the_next_run_completes_it(root, Calls)
        if not calls.happened:
            return


class Full(Calls):
    def write(self, file: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_root_stops_the_set_at_once_and_says_what_to_do(root):
    """Every further file would only take the last bytes from somebody else."""
    fill(root, OLD)
    calls = FaultyCalls(Full(), 10**9, errno.EIO)

    batch = Root(str(root), calls).write(wanted())

    assert calls.log.count("write") == 1
    assert held(root) == OLD
    assert leftovers(root) == []
    assert [(result.fate, result.cause) for result in batch.results] == [
        (Fate.FAILED, Cause.FULL),
        (Fate.HELD_BACK, Cause.OTHER_FILE),
        (Fate.UNCHANGED, None),
        (Fate.HELD_BACK, Cause.OTHER_FILE),
        (Fate.HELD_BACK, Cause.OTHER_FILE),
    ]
    assert batch.results[0].message == (
        "Cannot write /etc/slurm/slurm.conf: No space left on device. Free space on its volume, or enlarge it."
    )


# Leftovers.


def test_leftovers_of_ours_and_of_soperator_are_swept_and_nothing_else(root):
    fill(root, NEW)
    ours = root / "etc/slurm" / temporary("slurm.conf")
    theirs = root / "etc/slurm/slurm.conf-sconfigcontroller-2894671053"
    for file in (ours, theirs):
        file.write_bytes(b"half")
    kept = root / "etc/slurm/notes-sconfigcontroller-readme"
    kept.write_bytes(b"of a user")
    link = root / "etc/slurm/x-sconfigcontroller-ab"
    link.symlink_to(kept)
    directory = root / "etc/slurm/y-sconfigcontroller-ab"
    directory.mkdir()

    swept = Root(str(root)).sweep([*NEW, "relative", "/no/such/directory/file"])

    assert set(swept.removed) == {f"/etc/slurm/{ours.name}", f"/etc/slurm/{theirs.name}"}
    assert not ours.exists()
    assert not theirs.exists()
    assert kept.exists()
    assert link.is_symlink()
    assert directory.is_dir()
    assert len(swept.troubles) == 2


# Races.


def swapping(one: str, other: str, at: int, stop: threading.Event) -> threading.Thread:
    def swap() -> None:
        while not stop.is_set():
            Calls().exchange(one, other, at=at)

    thread = threading.Thread(target=swap)
    thread.start()
    return thread


@pytest.mark.parametrize("calls", KERNELS)
def test_a_directory_swapped_for_a_link_never_leads_outside(root, calls):
    fill(root, OLD)
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "slurm.conf").write_bytes(b"precious")
    (root / "etc/trap").symlink_to(outside)
    at, stop = os.open(root / "etc", os.O_RDONLY), threading.Event()
    thread = swapping("slurm", "trap", at, stop)
    place, seen = Root(str(root), calls()), set()
    try:
        for number in range(400):
            batch = place.write([WantedFile("/etc/slurm/slurm.conf", b"%d" % number)])
            place.discard(batch.replaced)
            place.sweep(["/etc/slurm/slurm.conf"])
            seen.add(batch.results[0].fate)
    finally:
        stop.set()
        thread.join()
        os.close(at)

    assert {file.name: file.read_bytes() for file in outside.iterdir()} == {"slurm.conf": b"precious"}
    assert {Fate.WRITTEN, Fate.REFUSED} <= seen, "the race was run from both sides"


@pytest.mark.parametrize("calls", KERNELS)
@pytest.mark.parametrize("trap", ["link", "directory"])
def test_a_file_swapped_for_something_else_is_never_followed(root, calls, trap):
    fill(root, {"/slurm.conf": (b"old", 0o644)})
    outside = root.parent / "outside"
    outside.write_bytes(b"precious")
    if trap == "link":
        (root / "trap").symlink_to(outside)
    else:
        (root / "trap").mkdir()
        (root / "trap/precious").write_bytes(b"precious")
    at, stop = os.open(root, os.O_RDONLY), threading.Event()
    thread = swapping("slurm.conf", "trap", at, stop)
    place = Root(str(root), calls())
    try:
        for number in range(400):
            batch = place.write([WantedFile("/slurm.conf", b"%d" % number)])
            place.discard(batch.replaced)
            if not any(
                (root / name).is_symlink() or (root / name).is_dir() for name in ("slurm.conf", "trap")
            ):
                break  # The writer's own exchange took the trap away.
    except FileNotFoundError:
        pass
    finally:
        stop.set()
        thread.join()
        os.close(at)

    assert outside.read_bytes() == b"precious"
    if trap == "directory":
        assert any((found / "precious").exists() for found in root.iterdir()), "no directory is ever removed"


def test_a_directory_that_appears_after_the_look_is_put_back(root):
    fill(root, {"/slurm.conf": (b"old", 0o644)})

    class Swapped(Calls):
        def exchange(self, one, other, *, at):
            if not (root / "aside").exists():
                (root / "slurm.conf").rename(root / "aside")
                (root / "slurm.conf").mkdir()
            super().exchange(one, other, at=at)

    batch = Root(str(root), Swapped()).write([WantedFile("/slurm.conf", b"new")])

    assert batch.results[0].fate is Fate.REFUSED
    assert (root / "slurm.conf").is_dir()
    assert leftovers(root) == []


# Any batch.

NAMES = st.sampled_from(["a", "b", "etc", "slurm.conf", "ü"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
FILES = st.dictionaries(
    PATHS, st.tuples(st.binary(max_size=40), st.sampled_from([0o600, 0o644, 0o755])), max_size=5
)


def no_nesting(content: Content) -> Content:
    """Without those whose path is a directory of another."""
    return {
        path: value
        for path, value in content.items()
        if not any(other.startswith(f"{path}/") for other in content)
    }


@settings(max_examples=100, deadline=None)
@given(
    old=FILES.map(no_nesting),
    new=FILES.map(no_nesting),
    number=st.integers(0, 60),
    fault=st.sampled_from([*FAULTS, Killed]),
    after=st.booleans(),
    lasting=st.booleans(),
    real=st.sampled_from([Calls, WithoutOpenat2, WithoutExchange]),
)
def test_any_batch_with_any_fault_leaves_old_or_new(
    tmp_path_factory, old, new, number, fault, after, lasting, real
):
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None) as place:
        check_any(Path(place), old, new, FaultyCalls(real(), number, fault, after=after, lasting=lasting))


def check_any(root: Path, old: Content, new: Content, calls: FaultyCalls) -> None:
    fill(root, old)
    batch = None
    with contextlib.suppress(Killed):
        batch = Root(str(root), calls).write(wanted(new))

    now = held(root)
    assert all(now.get(path) in (old.get(path), new.get(path, old.get(path))) for path in old | new)
    assert all(path in now for path in old)
    if batch is not None and not calls.happened:
        assert batch.is_complete == (now == old | new)
    place = Root(str(root), calls.real)
    place.sweep(new)
    again = place.write(wanted(new))
    refused = {result.path for result in again.results if result.fate is Fate.REFUSED}
    assert again.is_complete != bool(refused)
    place.discard(again.replaced)
    assert leftovers(root) == []
