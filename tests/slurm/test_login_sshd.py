"""sshd as login pods configure it: root's keys from a directory that sshd itself would not trust."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_operator.manifests.builders import sshd
from slurm_operator.runtime.act.secret_generators import ssh_host_keys
from testing.boxed.box import Box, box_in

DIRECTORY = sshd.AUTHORIZED_KEYS_DIRECTORY
# sshd would soon refuse to talk to a client that fails as often as this test does.
EXTRA = "PerSourcePenalties no\nMaxAuthTries 3\nMatch Group nobody\n    X11Forwarding no\n"


@pytest.fixture(scope="module")
def box(rootfs: Path, tmp_path_factory) -> Iterator[Box]:
    """A machine with sshd, our sshd_config and generated host keys, of which one type is left out."""
    directory = tmp_path_factory.mktemp("login")
    entries = {name: key for name, key in ssh_host_keys(2048).items() if "ecdsa" not in name}
    config = sshd.sshd_config(EXTRA, port=2222, host_keys=sshd.host_key_files(entries)) + sshd.keys_of_root()
    with box_in(directory, rootfs, "login-0") as box:
        for name, key in entries.items():
            box.write_secret(f"/etc/ssh/{name}", key, (0, 0))
        box.write_secret("/etc/ssh/sshd_config", config.encode(), (0, 0))
        # As the kubelet mounts a projected volume: anybody may write there, and files are links.
        box.run("install", "--directory", "--mode=1777", DIRECTORY, "/run/sshd-keys")
        box.run("chmod", "755", "/run/sshd-keys")
        box.run("install", "--directory", "/run/sshd")
        box.run("ip", "link", "set", "lo", "up")
        box.run("ssh-keygen", "-A")
        box.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/tmp/key")
        process = box.start(["/usr/sbin/sshd", "-D", "-e"], directory / "sshd.log")
        yield box
    process.wait()


def update(box: Box, keys: str) -> None:
    """New content, put in place as the kubelet does: a fresh directory behind a link."""
    version = f"{DIRECTORY}/..{time.monotonic_ns()}"
    box.run("mkdir", version)
    box.write_secret(f"{version}/root", sshd.authorized_keys(keys).encode(), (0, 0))
    box.run("ln", "-sfn", version, f"{DIRECTORY}/..data")
    box.run("ln", "-sfn", "..data/root", f"{DIRECTORY}/root")


def log_in(box: Box) -> "subprocess.CompletedProcess[str]":
    quiet = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]
    return box.run("ssh", "-p", "2222", "-i", "/tmp/key", *quiet, "root@127.0.0.1", "whoami", check=False)


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def test_only_host_keys_that_all_pods_share_are_offered(box):
    offered: set[str] = set()
    until(lambda: bool(offered.update(offered_types(box)) or offered), "sshd to answer")

    assert offered == {"ssh-ed25519", "ssh-rsa"}  # ssh-keygen -A made an ECDSA key beside them.


def offered_types(box: Box) -> set[str]:
    lines = box.run("ssh-keyscan", "-p", "2222", "127.0.0.1", check=False).stdout.splitlines()
    return {line.split()[1] for line in lines if not line.startswith("#")}


def test_keys_of_root_open_and_close_the_door_of_a_running_sshd(box):
    update(box, "")
    until(lambda: "Permission denied" in log_in(box).stderr, "sshd to listen and refuse")

    update(box, box.path("/tmp/key.pub").read_text())
    assert log_in(box).stdout == "root\n"

    update(box, "")
    assert "Permission denied" in log_in(box).stderr


def test_the_users_own_lines_count_and_ours_about_root_stand_behind_them(box):
    of_root = box.run("/usr/sbin/sshd", "-T", "-C", "user=root,host=x,addr=1.2.3.4").stdout.lower()
    of_nobody = box.run("/usr/sbin/sshd", "-T", "-C", "user=nobody,host=x,addr=1.2.3.4").stdout.lower()

    assert "maxauthtries 3" in of_root
    assert f"authorizedkeyscommand /usr/bin/cat {DIRECTORY}/%u" in of_root
    assert "authorizedkeyscommand none" in of_nobody
    assert "usepam yes" in of_nobody
