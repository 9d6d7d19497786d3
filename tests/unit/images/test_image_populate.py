"""What the populate program makes of a root: new, old, half made, full, read-only and booby-trapped."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.entry.shared_root import journal, locking, sources
from images.entry.shared_root import populate as program
from images.entry.shared_root.failure import Failure, Reason
from images.entry.shared_root.layout import LOCK, MOUNT_POINTS, NODE_LINKS, REPLACED, WORK
from images.entry.shared_root.marker import Marker, parsed
from images.entry.shared_root.report import Report, fitting
from images.entry.shared_root.settings import Settings
from unit.images.populating import (
    IMAGE,
    MARKER,
    OLD,
    files_of,
    make_archive,
    make_tree,
    run,
    settings,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="files of many owners are made by root only")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return make_archive(tmp_path / "root.tar")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def old(root: Path) -> Path:
    return make_tree(root, OLD)


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A volume of 1 MiB."""
    path = tmp_path / "volume"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def marker_of(root: Path) -> Marker:
    return parsed((root / MARKER).read_bytes())


def reason_of(root: Path, source: Path, **changes: object) -> Reason:
    with pytest.raises(Failure) as failed:
        run(root, source, **changes)
    return failed.value.reason


def test_an_empty_directory_becomes_a_whole_root(root, archive):
    result = run(root, archive, request="job-1")

    assert result["result"] == "Populated"
    found = files_of(root)
    assert found["usr/bin/sh"] == "shell 2"
    assert found["root/.bashrc"] == "bashrc 2"
    assert {name: found[name] for name in NODE_LINKS} == {name: f"-> {to}" for name, to in NODE_LINKS.items()}
    assert all((root / path).is_dir() for path in MOUNT_POINTS)
    assert (root / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert root.stat().st_mode & 0o7777 == 0o755
    assert marker_of(root).request == "job-1"
    assert marker_of(root).identity.startswith("sha256:")
    assert not (root / WORK).exists()
    assert not (root / LOCK).exists()


def test_root_of_any_node_may_log_in_to_any_other(root, archive):
    run(root, archive)

    public = (root / "root/.ssh/id_ecdsa.pub").read_text()
    assert public.startswith("ecdsa-sha2")
    assert public in (root / "root/.ssh/authorized_keys").read_text()
    assert (root / "root/.ssh/id_ecdsa").stat().st_mode & 0o777 == 0o600


def test_a_complete_root_is_left_as_it_is(root, archive):
    run(root, archive)
    (root / "usr/bin/tool").write_text("changed by a user")
    before = files_of(root)

    assert run(root, archive)["result"] == "AlreadyPopulated"
    assert files_of(root) == before


def test_mount_points_that_were_not_asked_for_before_are_made_in_a_complete_root(root, archive):
    run(root, archive)
    run(root, archive, mount_points=("mnt/data/set", "home"))

    assert (root / "mnt/data/set").is_dir()


def test_overwriting_replaces_the_system_and_keeps_what_is_the_users(old, archive):
    run(old, archive, overwrite=True)

    found = files_of(old)
    assert (found["usr/bin/sh"], found["usr/lib/new/file"]) == ("shell 2", "new")
    assert found["usr/bin/installed-by-a-user"] == "mine"
    untouched = [
        name for name in OLD if name.startswith(("home", "root", "data", "srv", "etc/ssh", "etc/slurm"))
    ]
    assert {name: found[name] for name in untouched} == {name: OLD[name] for name in untouched}
    assert "root/.bashrc" not in found
    assert "home/image-user/file" not in found


def test_accounts_are_those_of_the_image_and_of_the_users(old, archive):
    run(old, archive, overwrite=True)

    assert (old / "etc/passwd").read_text().splitlines() == [
        "root:x:0:0:me:/root:/bin/zsh",
        "sys:x:50:50::/:/usr/sbin/nologin",
        "ada:x:1000:1000::/data/ada:/bin/sh",
    ]
    assert (old / "etc/group").read_text().splitlines() == ["root:x:0:", "sudo:x:27:ada", "ada:x:1000:"]
    assert (old / "etc/shadow").read_text().splitlines()[0] == "root:$6$secret:1::::::"
    assert "ada:$6$ada" in (old / "etc/shadow").read_text()


def test_everything_else_is_deleted_only_when_that_is_confirmed(old, archive):
    run(old, archive, overwrite=True, delete_others=True)

    found = files_of(old)
    assert "usr/bin/installed-by-a-user" not in found
    assert not (old / "srv").exists()
    kept = [name for name in OLD if name.startswith(("home", "root", "data", "etc/ssh", "etc/slurm"))]
    assert {name: found[name] for name in kept} == {name: OLD[name] for name in kept}
    assert "ada:x:1000" in found["etc/passwd"]


def test_the_confirmation_alone_deletes_nothing(old, archive):
    (old / MARKER).unlink()
    (old / WORK).mkdir()  # Somebody was interrupted before anything was changed.
    run(old, archive, delete_others=True)

    assert (old / "srv/others").read_text() == "others"


def test_a_home_that_is_a_directory_of_the_system_protects_nothing(old, archive):
    with (old / "etc/passwd").open("a") as passwd:
        passwd.write("eve:x:1001:1001::/usr:/bin/sh\n")
    run(old, archive, overwrite=True, delete_others=True)

    assert (old / "usr/bin/sh").read_text() == "shell 2"
    assert not (old / "usr/bin/installed-by-a-user").exists()


def test_paths_that_the_job_names_are_kept_too(old, archive):
    run(old, archive, overwrite=True, delete_others=True, keep=("srv",))

    assert (old / "srv/others").read_text() == "others"


def test_volumes_mounted_in_the_root_are_not_its_content(old, archive):
    (old / "mnt/scratch").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", old / "mnt/scratch"], check=True)
    try:
        (old / "mnt/scratch/file").write_text("of another volume")
        run(old, archive, overwrite=True, delete_others=True)
        assert (old / "mnt/scratch/file").read_text() == "of another volume"
    finally:
        subprocess.run(["umount", "--lazy", old / "mnt/scratch"], check=True)


def test_one_request_to_overwrite_is_answered_once(old, archive):
    run(old, archive, overwrite=True, request="job-1")
    (old / "usr/bin/tool").write_text("changed since")

    assert run(old, archive, overwrite=True, request="job-1")["result"] == "AlreadyPopulated"
    assert run(old, archive, overwrite=True, request="job-2")["result"] == "Populated"
    assert (old / "usr/bin/tool").read_text() == "tool 2"


@pytest.mark.parametrize("name", ["root.tar.gz", "root.tar.xz"])
def test_an_archive_may_be_compressed(root, tmp_path, name):
    run(root, make_archive(tmp_path / name))

    assert (root / "usr/bin/sh").read_text() == "shell 2"


def test_a_snapshot_brings_its_content_but_not_its_marker(root, tmp_path):
    snapshot = make_tree(tmp_path / "snapshot", {**IMAGE, MARKER: "of the snapshot", ".populated": "old"})
    os.chown(snapshot / "usr/bin/tool", 1234, 1234)
    os.setxattr(snapshot / "usr/bin/tool", "user.note", b"kept")
    (snapshot / "usr/bin/same").hardlink_to(snapshot / "usr/bin/tool")
    run(root, snapshot)

    assert marker_of(root).source == f"directory {snapshot}"
    assert not (root / ".populated").exists()
    assert (root / "usr/bin/tool").stat().st_uid == 1234
    assert os.getxattr(root / "usr/bin/tool", "user.note") == b"kept"
    assert (root / "usr/bin/same").samefile(root / "usr/bin/tool")


RESTIC = """#!/bin/sh
echo "$@" >> {log}
case "$1" in
snapshots) echo '[{{"id": "abc123"}}]' ;;
restore)
    for word; do case "$word" in --target=*) target=${{word#--target=}} ;; esac; done
    echo '{{"message_type": "status", "bytes_restored": 5, "total_bytes": 10}}'
    cp --archive {tree}/. "$target" ;;
esac
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository, and a program called restic that restores our miniature from it."""
    tree = make_tree(tmp_path / "tree", IMAGE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/restic").write_text(RESTIC.format(log=tmp_path / "restic.log", tree=tree))
    (tmp_path / "bin/restic").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=os.pathsep)
    return make_tree(tmp_path / "repository", {"config": "", "snapshots/abc123": ""})


def test_a_root_is_restored_by_restic(root, repository, tmp_path, capsys):
    run(root, repository)

    assert (root / "usr/bin/sh").read_text() == "shell 2"
    assert marker_of(root).identity == "restic:abc123"
    assert "--insecure-no-password" in (tmp_path / "restic.log").read_text()
    assert {"phase": "Unpacking"} in [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_an_image_without_restic_is_named(root, repository, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")

    assert reason_of(root, repository) == Reason.NO_SOURCE


@pytest.mark.parametrize("files", [{".populated": "", **OLD}, {**OLD, "dev/null": ""}])
def test_a_root_of_an_older_release_is_taken_over(root, archive, files):
    make_tree(root, {name: content for name, content in files.items() if name != MARKER})
    flag, library = root / "etc/gpu_libs_installed.flag", root / "usr/lib/x86_64-linux-gnu/libcuda.so.535.1"
    make_tree(root, {"etc/gpu_libs_installed.flag": "", "usr/lib/x86_64-linux-gnu/libcuda.so.535.1": "x"})
    real = make_tree(root, {"usr/lib/x86_64-linux-gnu/libreal.so.1": "x" * 64})

    assert run(root, archive)["result"] == "Adopted"
    assert (root / MARKER).exists()
    assert not (root / ".populated").exists()
    assert (root / "usr/bin/sh").read_text() == "shell 1"
    assert not flag.exists()
    assert not library.exists()
    assert (real / "usr/lib/x86_64-linux-gnu/libreal.so.1").exists()


def test_files_that_nobody_can_tell_the_meaning_of_are_left_alone(root, archive):
    make_tree(root, {"dev/x": "", "usr/x": ""})

    assert reason_of(root, archive) == Reason.UNKNOWN_CONTENT
    assert sorted(files_of(root)) == ["dev/x", "usr/x"]


def test_a_volume_that_is_too_small_keeps_its_old_root(volume, tmp_path):
    make_tree(volume, OLD)
    before = files_of(volume)
    large = make_archive(tmp_path / "large.tar", {**IMAGE, "usr/lib/large": "x" * 2**21})

    assert reason_of(volume, large, overwrite=True) == Reason.OUT_OF_SPACE
    assert files_of(volume) == before


def test_a_volume_that_fills_up_while_unpacking_keeps_its_old_root_and_gets_its_space_back(volume, tmp_path):
    make_tree(volume, OLD)
    before = files_of(volume)
    large = make_archive(tmp_path / "large.tar.gz", {**IMAGE, "usr/lib/large": "x" * 2**21})

    assert reason_of(volume, large, overwrite=True) == Reason.OUT_OF_SPACE
    assert files_of(volume) == before
    (volume / "user-file").write_text("y" * 2**19)
    (volume / "user-file").unlink()

    subprocess.run(["mount", "-o", "remount,size=8m", volume], check=True)
    assert run(volume, large, overwrite=True)["result"] == "Populated"


def test_a_read_only_volume_is_named(volume, archive):
    subprocess.run(["mount", "-o", "remount,ro", volume], check=True)

    assert reason_of(volume, archive) == Reason.READ_ONLY


@pytest.fixture
def without_attributes(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "plain"
    path.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ramfs", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def test_a_volume_without_extended_attributes_is_named_where_they_would_be_lost(
    without_attributes, tmp_path, monkeypatch
):
    snapshot = make_tree(tmp_path / "snapshot", IMAGE)
    os.setxattr(snapshot / "usr/bin/tool", "user.note", b"lost")
    assert reason_of(without_attributes, snapshot) == Reason.NO_EXTENDED_ATTRIBUTES
    assert not (without_attributes / MARKER).exists()

    monkeypatch.setenv("POPULATE_WITHOUT_ATTRIBUTES", "1")
    assert run(without_attributes, snapshot)["result"] == "Populated"


def test_a_volume_without_extended_attributes_will_do_where_there_are_none(without_attributes, archive):
    assert run(without_attributes, archive)["result"] == "Populated"


def test_a_volume_without_locks_is_named(root, archive, monkeypatch):
    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locking.fcntl, "flock", flock)

    assert reason_of(root, archive) == Reason.NO_LOCKS


@pytest.mark.parametrize("damage", [b"", b"not a tar at all" * 100])
def test_a_broken_archive_costs_nothing(old, tmp_path, damage):
    broken = tmp_path / "broken.tar"
    broken.write_bytes(damage)
    before = files_of(old)

    assert reason_of(old, broken, overwrite=True) == Reason.BROKEN_SOURCE
    assert files_of(old) == before


def test_an_archive_that_is_cut_short_costs_nothing(old, archive):
    archive.write_bytes(archive.read_bytes()[:6000])
    before = files_of(old)

    assert reason_of(old, archive, overwrite=True) == Reason.BROKEN_SOURCE
    assert files_of(old) == before


def test_content_without_a_shell_is_no_root(root, tmp_path):
    assert reason_of(root, make_archive(tmp_path / "data.tar", {"data": ""})) == Reason.BROKEN_SOURCE


def test_nothing_to_populate_from_is_named(root, tmp_path, monkeypatch):
    assert reason_of(root, tmp_path / "nothing.tar") == Reason.NO_SOURCE
    monkeypatch.setattr(sources, "SNAPSHOT", tmp_path / "none")
    monkeypatch.setattr(sources, "ARCHIVES", tmp_path / "none")
    monkeypatch.setattr(sources, "RESTIC", tmp_path / "none")
    with pytest.raises(Failure, match="POPULATE_SOURCE"):
        sources.find_source("")


def outside(tmp_path: Path) -> Path:
    return make_tree(
        tmp_path / "outside", {"passwd": "of the pod", "bin/tool": "of the pod", "sh": "of the pod"}
    )


@pytest.mark.parametrize("path", ["usr", "usr/bin", "etc", "usr/lib/new"])
def test_a_link_in_the_place_of_a_directory_leads_nowhere(old, archive, tmp_path, path):
    target = outside(tmp_path)
    before = files_of(target)
    shutil.rmtree(old / path, ignore_errors=True)
    (old / path).parent.mkdir(exist_ok=True, parents=True)
    (old / path).symlink_to(target)
    if path == "etc":
        assert reason_of(old, archive, overwrite=True) == Reason.UNSAFE_ROOT
    else:
        run(old, archive, overwrite=True, delete_others=True)
        assert (old / "usr/bin/tool").read_text() == "tool 2"
        assert not (old / path).is_symlink()

    assert files_of(target) == before


@pytest.mark.parametrize("path", ["etc/passwd", "etc/shadow", WORK, LOCK])
def test_a_link_in_the_place_of_a_file_that_is_read_is_refused(old, archive, tmp_path, path):
    target = outside(tmp_path) / "passwd"
    (old / path).unlink(missing_ok=True)
    (old / path).symlink_to(target)

    assert reason_of(old, archive, overwrite=True) in (Reason.UNSAFE_ROOT, Reason.FILE_SYSTEM)
    assert target.read_text() == "of the pod"
    assert (old / "usr/bin/tool").read_text() == "tool 1"


def test_a_pipe_in_the_place_of_a_file_does_not_hold_us_up(old, archive):
    (old / "etc/passwd").unlink()
    os.mkfifo(old / "etc/passwd")

    assert reason_of(old, archive, overwrite=True) == Reason.UNSAFE_ROOT


def test_a_mount_point_behind_a_link_is_named_before_anything_is_changed(old, archive, tmp_path):
    (old / "mnt").symlink_to(outside(tmp_path))
    before = files_of(old)

    with pytest.raises(Failure, match="/mnt in the root is a link or a file") as refused:
        run(old, archive, overwrite=True)
    assert refused.value.reason == Reason.UNSAFE_ROOT
    assert {name: content for name, content in files_of(old).items() if not name.startswith(WORK)} == before
    assert (old / MARKER).exists()


def test_a_link_in_the_place_of_roots_keys_is_not_written_through(old, archive, tmp_path):
    shutil.rmtree(old / "root/.ssh")
    (old / "root/.ssh").symlink_to(outside(tmp_path))
    result = run(old, archive, overwrite=True)

    assert result["result"] == "Populated"
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["bin", "passwd", "sh"]


def test_a_directory_in_the_place_of_a_file_is_put_aside(old, archive):
    (old / "usr/bin/tool").unlink()
    make_tree(old, {"usr/bin/tool/inside": "mine"})
    run(old, archive, overwrite=True)

    assert (old / "usr/bin/tool").read_text() == "tool 2"
    [put] = (old / REPLACED).iterdir()
    assert (put / "inside").read_text() == "mine"


def test_a_run_from_another_source_does_not_take_over_what_is_half_moved(old, archive, tmp_path, monkeypatch):
    """Half of one system is in the root, half of another is unpacked, and then the first one is wanted again."""
    other = make_archive(tmp_path / "other.tar", {**IMAGE, "usr/bin/tool": "tool 3", "usr/lib/other": ""})
    with monkeypatch.context() as patched:
        patched.setattr(program, "move_in", _stop)
        assert reason_of(old, archive, overwrite=True) == Reason.INTERRUPTED
    with monkeypatch.context() as patched:
        patched.setattr(sources.Archive, "unpack", _stop)
        patched.setattr(journal.shutil, "rmtree", lambda *_, **__: None)
        assert reason_of(old, other, overwrite=True) == Reason.INTERRUPTED
    run(old, archive, overwrite=True)

    assert (old / "usr/bin/tool").read_text() == "tool 2"
    assert marker_of(old).identity.startswith("sha256:")


def _stop(*_: object) -> None:
    raise Failure(Reason.INTERRUPTED, "stopped")


def test_time_that_is_up_is_named_and_the_next_run_goes_on(root, archive):
    with pytest.raises(Failure) as late:
        program.populate(settings(root, archive), Report(deadline_s=0.0, started=time.monotonic() - 1))
    assert late.value.reason == Reason.DEADLINE_EXCEEDED

    assert run(root, archive)["result"] == "Populated"


def test_a_root_that_is_never_mounted_is_named(tmp_path, archive):
    with pytest.raises(Failure) as late:
        program.populate(settings(tmp_path / "none", archive), Report(started=time.monotonic() - 601))

    assert late.value.reason == Reason.NOT_MOUNTED


CHANGES = {
    "a new root": ({}, {}),
    "another system": (OLD, {"overwrite": True}),
    "another system, others deleted": (OLD, {"overwrite": True, "delete_others": True}),
}

# In a process of its own, which has no threads, so that it can be copied for each kill.
KILLS = """
import json, shutil, sys
from pathlib import Path
from unit.images.populating import *

work, archive, old, changes = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]), json.loads(sys.argv[4])
varying = (MARKER, "root/.ssh/id_ecdsa", "root/.ssh/id_ecdsa.pub", "root/.ssh/authorized_keys")
sys.stdout = open("/dev/null", "w")

def fresh(name):
    root = work / name
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    return make_tree(root, old)

complete = fresh("expected")
run(complete, archive, **changes)
expected = files_of(complete, varying)
before = files_of(fresh("root"), varying)
kills = states = 0
for at in range(1, 10000):
    root = fresh("root")
    if not calls_until_killed(root, archive, at, changes):
        break
    kills += 1
    if (root / MARKER).exists():
        content = (root / MARKER).read_text()
        found = {n: c for n, c in files_of(root, varying).items() if not n.startswith(".slurm-operator-populate")}
        whole = before if content == old.get(MARKER) else expected
        assert found == whole, (at, "the marker is there, but the root is not whole", set(found) ^ set(whole))
    else:
        states += 1
    run(root, archive, **changes)
    found = files_of(root, varying)
    assert found == expected, (at, set(found.items()) ^ set(expected.items()))
    assert not (root / ".slurm-operator-populate").exists(), at
print(kills, states, file=sys.stderr)
"""


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_that_is_killed_between_any_two_file_calls_leaves_no_half_made_root(volume, archive, name):
    old, changes = CHANGES[name]
    command = [sys.executable, "-c", KILLS, volume, archive, json.dumps(old), json.dumps(changes)]
    tests = Path(__file__).parents[2]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(tests)}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    kills, without_marker = map(int, done.stderr.split())
    assert kills > 80
    assert 15 < without_marker <= kills


def test_what_the_job_asks_for_is_read_from_its_variables():
    read = Settings.read(
        {
            "OVERWRITE": "1",
            "POPULATE_DELETE_OTHERS": "1",
            "POPULATE_DEADLINE_SECONDS": "90",
            "POPULATE_MOUNT_POINTS": "/mnt/data /scratch",
            "POPULATE_KEEP": "/srv",
        }
    )

    assert (read.overwrite, read.delete_others, read.deadline_s) == (True, True, 90.0)
    assert (read.mount_points, read.keep) == (("mnt/data", "scratch"), ("srv",))
    assert Settings.read({}) == Settings()


@pytest.mark.parametrize(
    "variables",
    [{"OVERWRITE": "yes"}, {"POPULATE_DEADLINE_SECONDS": "1m"}, {"POPULATE_MOUNT_POINTS": "/mnt/../etc"}],
)
def test_what_cannot_be_meant_is_refused(variables):
    with pytest.raises(Failure) as refused:
        Settings.read(variables)

    assert refused.value.reason == Reason.WRONG_SETTING


def test_the_end_is_told_in_the_termination_message(root, archive, tmp_path, monkeypatch):
    log = tmp_path / "termination-log"
    monkeypatch.setattr(Report.end, "__defaults__", (log,))
    variables = {"POPULATE_ROOT": str(root), "POPULATE_MUST_BE_MOUNTED": "0"}

    assert program.main({**variables, "POPULATE_SOURCE": str(tmp_path / "none")}) == 1
    failed = json.loads(log.read_text())
    assert (failed["result"], failed["reason"]) == ("Failed", "NoSource")
    assert str(tmp_path / "none") in failed["message"]

    assert program.main({**variables, "POPULATE_SOURCE": str(archive)}) == 0
    assert json.loads(log.read_text())["result"] == "Populated"


def test_a_termination_message_is_never_longer_than_kubernetes_takes():
    message = {"result": "Failed", "message": "x" * 9000, "notes": ["y" * 500] * 100}
    written = fitting(message)

    assert len(written) <= 4096
    assert json.loads(written)["result"] == "Failed"
