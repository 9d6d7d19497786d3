"""/home of a local cluster: who is let in, and what is kept."""

import os
from pathlib import Path

import pytest

from slurm_local import home, stop
from slurm_local.errors import LocalError
from slurm_local.image.accounts import Account, accounts_layer
from slurm_local.image.debian import BuiltRoot
from slurm_local.image.tars import File, write_layer
from slurm_local.machine.neighbours import homes_in
from slurm_local.paths import Paths
from slurm_local.progress import Quiet

SELF = Account("demo", os.getuid())
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes homes of others")
DEMO = Account("demo", 1000)
ONE, OTHER = "ssh-ed25519 AAAAone", "ssh-ed25519 AAAAother"


def keys(place: Path) -> list[str]:
    return (place / "demo" / ".ssh" / "authorized_keys").read_text().splitlines()


@needs_root
def test_a_home_is_its_users_and_lets_in_who_has_the_key(tmp_path: Path) -> None:
    home.make(tmp_path / "homes", [f"{ONE} ada@laptop"], DEMO)

    made = (tmp_path / "homes" / "demo").stat()
    assert (made.st_uid, made.st_gid, made.st_mode & 0o777) == (1000, 1000, 0o700)
    assert keys(tmp_path / "homes") == [f"{ONE} slurm-operator-local"]


@needs_root
def test_a_new_key_takes_the_place_of_ours_and_of_no_other(tmp_path: Path) -> None:
    home.make(tmp_path, [ONE], DEMO)
    with (tmp_path / "demo" / ".ssh" / "authorized_keys").open("a") as file:
        file.write("ssh-rsa AAAA ada\n")
    (tmp_path / "demo" / "results").write_text("42")

    home.make(tmp_path, [OTHER], DEMO)

    assert keys(tmp_path) == ["ssh-rsa AAAA ada", f"{OTHER} slurm-operator-local"]
    assert (tmp_path / "demo" / "results").read_text() == "42"


@needs_root
def test_a_link_in_a_kept_home_leads_nobody_elsewhere(tmp_path: Path) -> None:
    victim = tmp_path / "root"
    victim.mkdir(mode=0o700)
    home.make(tmp_path, [ONE], DEMO)
    (tmp_path / "demo" / ".ssh" / "authorized_keys").unlink()
    (tmp_path / "demo" / ".ssh").rmdir()
    (tmp_path / "demo" / ".ssh").symlink_to(victim)

    with pytest.raises(LocalError, match="Cannot write"):
        home.make(tmp_path, [ONE], DEMO)

    assert list(victim.iterdir()) == []


def test_a_file_in_the_place_of_a_home_is_named(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("")

    with pytest.raises(LocalError, match="is no directory"):
        home.make(tmp_path, [], SELF)


def test_a_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file, public = home.key_pair(tmp_path / "ssh")

    assert home.key_pair(tmp_path / "ssh") == (file, public)
    assert public.startswith("ssh-ed25519 ")
    assert file.stat().st_mode & 0o777 == 0o600


def test_down_deletes_a_home_that_was_kept_and_says_so(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "state", tmp_path / "cache")
    kept = paths.home_of("demo") / "demo"
    kept.mkdir(parents=True)
    (kept / "results").write_text("42")

    assert not stop.down("demo", paths, Quiet(), keep_home=True)
    assert (kept / "results").exists()

    assert stop.down("demo", paths, Quiet())
    assert not paths.home.exists()
    assert not stop.down("demo", paths, Quiet()), "there is nothing left"


def test_the_images_have_the_users_of_their_root_and_one_more(tmp_path: Path) -> None:
    files = {"./etc/passwd": File(b"root:x:0:0:root:/root:/bin/sh\n"), "./etc/group": File(b"root:x:0:\n")}
    write_layer(tmp_path / "root.tar", files)

    layer = accounts_layer(BuiltRoot(tmp_path), DEMO)

    assert layer["/etc/passwd"] == File(
        b"root:x:0:0:root:/root:/bin/sh\ndemo:*:1000:1000::/home/demo:/bin/bash\n"
    )
    assert layer["/etc/group"] == File(b"root:x:0:\ndemo:*:1000:\n")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param(
            "kubelet\0--config=/home/ada/s/clusters/local/nodes/x\0", ["/home/ada/s"], id="in a flag"
        ),
        pytest.param("python\0-m\0x\0/root/s/clusters/local/pki/ca\0", ["/root/s"], id="a word of its own"),
        pytest.param("kubelet\0--config=/home/ada/s/clusters/other/x\0", [], id="another cluster"),
        pytest.param("sleep\x00600\0", [], id="a process of a pod"),
    ],
)
def test_whose_a_component_is_stands_in_its_command_line(line: str, found: list[str]) -> None:
    assert homes_in(line, "local") == [Path(each) for each in found]
