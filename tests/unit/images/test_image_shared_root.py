"""Accounts of a root that gets a new image, and what is told about a root before anybody enters it."""

import stat
from pathlib import Path

import pytest

from images.entry.shared_root import check, joining
from images.entry.shared_root.accounts import homes, merged, shared_numbers, user_names
from images.entry.shared_root.layout import MARKER, MOUNT_POINTS, WORK
from images.entry.shared_root.marker import Marker, parsed
from slurm_local.image.shared_root import COMPLEMENT_ROOT, ENTER_ROOT, PLUGINS


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "result"),
    [
        pytest.param("passwd", "ada:x:1000:\n", "ada:x:1001:\n", "ada:x:1000:\n", id="a user stays as she is"),
        pytest.param("passwd", "sys:x:50:\n", "sys:x:60:\n", "sys:x:60:\n", id="a system account is the image's"),
        pytest.param("passwd", "pg:x:110:\n", "sys:x:60:\n", "sys:x:60:\npg:x:110:\n", id="one that the image lacks stays"),
        pytest.param("shadow", "root:$6$x:1\n", "root:*:2\n", "root:$6$x:1\n", id="root keeps the password"),
        pytest.param("group", "sudo:x:27:ada\n", "sudo:x:30:bob\n", "sudo:x:30:bob,ada\n", id="members of both"),
        pytest.param("gshadow", "sudo:!:eve:ada\n", "sudo:!::bob\n", "sudo:!:eve:bob,ada\n", id="administrators too"),
        pytest.param("passwd", "# a note\n\nada:x:1000:\n", "", "ada:x:1000:\n", id="what is no account is left out"),
        pytest.param("passwd", "f\udcfc:x:1000:\n", "", "f\udcfc:x:1000:\n", id="any encoding"),
        pytest.param("subuid", "ada:100000:65536\n", "ada:200000:65536\n", "ada:100000:65536\n", id="ranges"),
    ],
)  # fmt: skip
def test_accounts_of_users_stay_and_the_systems_are_replaced(name, ours, theirs, result):
    users = frozenset({"root", "ada"}) if name != "group" else frozenset()

    assert merged(name, ours, theirs, users) == result
    assert merged(name, result, theirs, users) == result  # A run that is started again merges once more.


def test_people_and_their_homes_are_told_from_system_accounts():
    passwd = (
        "root:x:0:0::/root:/bin/sh\nsys:x:50:50::/:/x\nada:x:1000:1000::/data/ada/:/bin/sh\n"
        "nobody:x:65534:65534::/nonexistent:/x\nodd:x:number:1::/odd:/x\n"
    )

    assert user_names(passwd) == {"root", "ada"}
    assert homes(passwd) == ["data/ada"]


def test_names_that_share_a_number_are_told():
    assert shared_numbers("a:x:110:\nb:x:110:\nc:x:111:\n") == [
        "User id 110 belongs to a and b: give one of them another."
    ]


@pytest.mark.parametrize("content", [b"2026-08-21T10:00:00Z\n", b"", b"17", b'{"other": 1}'])
def test_a_marker_of_another_program_is_a_marker(content):
    assert parsed(content) == Marker()


def test_a_marker_says_what_the_root_was_made_from():
    assert parsed(b'{"identity": "sha256:1", "request": "j"}') == Marker(identity="sha256:1", request="j")


def problem(root: Path, *arguments: str) -> str | None:
    text = " ".join([f"root={root}", "spool=none", *arguments])
    return check.problem_with_root({"SHARED_ROOT": text})


def test_a_pod_without_a_shared_root_is_not_held_up():
    assert check.problem_with_root({}) is None
    assert check.main({}) == 0


def test_a_root_that_is_not_there_is_named(tmp_path):
    assert "is not a directory: is the volume mounted?" in (problem(tmp_path / "none") or "")


def test_an_empty_root_is_told_from_a_half_made_one(tmp_path):
    assert "is not populated" in (problem(tmp_path) or "")
    (tmp_path / WORK).mkdir()
    assert "is being populated, or that was interrupted" in (problem(tmp_path) or "")


def test_a_marker_that_leads_elsewhere_is_no_marker(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / MARKER).symlink_to("/etc/hostname")

    assert problem(tmp_path) == f"/{MARKER} in the root is not a regular file. Replace it by one."


def test_the_pod_and_the_image_agree_on_where_things_are():
    assert check.ENTER_ROOT == ENTER_ROOT
    assert joining.COMPLEMENT_ROOT == COMPLEMENT_ROOT
    assert PLUGINS.lstrip("/") in MOUNT_POINTS


@pytest.fixture
def container(tmp_path):
    """The root of a container, and a shared root."""
    own, shared = tmp_path / "own", tmp_path / "shared"
    for place in (own, shared):
        (place / "etc").mkdir(parents=True)
        (place / "home").mkdir()
        (place / "etc/passwd").write_text(f"root:x:0:0:{place.name}:/root:/bin/sh\n")
    (shared / "opt/soperator-home").mkdir(parents=True)
    return own, shared


def test_a_daemon_knows_the_users_of_the_root_also_those_that_are_added_later(container):
    own, shared = container
    joining.link_accounts(shared, own)

    replaced = shared / "etc/passwd.new"
    replaced.write_text("alice:x:1000:1000::/home/alice:/bin/bash\n")
    replaced.rename(shared / "etc/passwd")

    assert (own / "etc/passwd").read_text().startswith("alice:")
    assert not (own / "etc/shadow").exists()  # The root has none.


def test_homes_of_a_daemon_are_those_of_the_root(container):
    own, shared = container
    for _ in range(2):  # A container that is started again finds its links.
        joining.link_accounts(shared, own)
    (shared / "home/alice").mkdir()

    assert (own / "home/alice").is_dir()
    assert (own / "opt/soperator-home").readlink() == shared / "opt/soperator-home"


def test_a_home_directory_that_has_something_in_it_stays(container):
    own, shared = container
    (own / "home/somebody").mkdir()
    joining.link_accounts(shared, own)

    assert (own / "home/somebody").is_dir()
    assert not (own / "home").is_symlink()


def test_the_root_is_where_the_plugin_is_told():
    assert joining.root_of({"SHARED_ROOT": "root=/mnt/jail ro=/x"}) == Path("/mnt/jail")
    assert joining.root_of({"SHARED_ROOT": "ro=/x"}) is None
    assert joining.root_of({}) is None


def test_outputs_that_stay_on_the_node_have_the_directories_of_the_roots(tmp_path):
    """slurmd ends a job whose output has no directory."""
    local = tmp_path / "opt/soperator-outputs/local"
    local.mkdir(parents=True, mode=0o755)
    (local / "task_prolog").symlink_to(tmp_path / "elsewhere")

    joining.make_node_outputs(tmp_path)
    assert [one.name for one in local.iterdir()] == ["task_prolog"], "nothing is mounted there"

    for _ in range(2):
        joining.make_node_outputs(tmp_path, lambda path: path == local)
        found = {one.name: stat.S_IMODE(one.lstat().st_mode) for one in local.iterdir() if one.is_dir()}
        assert found == dict.fromkeys(
            ("nccl_logs", "slurm_jobs", "slurm_scripts", "health_checker_cmd_stdout"), 0o777
        )
    assert stat.S_IMODE(local.stat().st_mode) == 0o1777
    assert not (tmp_path / "elsewhere").exists()


def test_a_node_that_takes_no_outputs_still_runs_slurmd(tmp_path, capsys):
    joining.make_node_outputs(tmp_path, lambda _: True)

    assert "Outputs of jobs may be lost on this node" in capsys.readouterr().err
