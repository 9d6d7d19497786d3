"""The same on a real file system that is full, or becomes read-only, in a mount namespace of its own."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

TRY = "mount -t tmpfs none /mnt"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or subprocess.run(["unshare", "-m", "sh", "-c", TRY], check=False, capture_output=True).returncode != 0,
    reason="only root mounts file systems, and not in every container",
)

BEFORE = """
import json, os, subprocess, sys
from slurm_operator.agents.sconfig.files import Root, WantedFile

def mount(*options):
    subprocess.run(["mount", *options, "/mnt"], check=True)

mount("-t", "tmpfs", "-o", "size=256k,nr_inodes=64", "none")
root = Root("/mnt")
first = root.write([WantedFile(f"/etc/slurm/{n}.conf", b"old %d" % n) for n in range(4)])
assert first.is_complete, first
"""

AFTER = """
found = {name: open(f"/mnt/etc/slurm/{name}", "rb").read().decode()[:5] for name in sorted(os.listdir("/mnt/etc/slurm"))}
told = [[result.fate.name, result.cause.name if result.cause else "", result.message] for result in batch.results]
json.dump({"found": found, "told": told}, sys.stdout)
"""


def played(script: str) -> dict[str, Any]:
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", BEFORE + script + AFTER], check=True, capture_output=True
    )
    return json.loads(done.stdout)


OLD = {f"{n}.conf": f"old {n}" for n in range(4)}


def test_a_root_that_is_full_in_the_middle_of_a_set_keeps_all_old_files():
    seen = played("""
batch = root.write([WantedFile(f"/etc/slurm/{n}.conf", b"new %d" % n + b"x" * 100_000) for n in range(4)])
""")

    assert seen["found"] == OLD
    assert [told[:2] for told in seen["told"]] == [
        ["HELD_BACK", "OTHER_FILE"],
        ["HELD_BACK", "OTHER_FILE"],
        ["FAILED", "FULL"],
        ["HELD_BACK", "OTHER_FILE"],
    ]
    assert "/etc/slurm/2.conf: No space left on device" in seen["told"][2][2]


def test_a_root_without_inodes_keeps_all_old_files():
    seen = played("""
os.makedirs("/mnt/others")
try:
    for n in range(1000):
        open(f"/mnt/others/{n}", "w").close()
except OSError:
    os.remove("/mnt/others/0")
batch = root.write([WantedFile(f"/etc/slurm/{n}.conf", b"new %d" % n) for n in range(4)])
""")

    assert seen["found"] == OLD
    assert [told[0] for told in seen["told"]] == ["HELD_BACK", "FAILED", "HELD_BACK", "HELD_BACK"]


def test_a_set_is_written_as_soon_as_there_is_space_again():
    seen = played("""
with open("/mnt/large", "wb") as large:
    large.write(b"x" * 200_000)
files = [WantedFile(f"/etc/slurm/{n}.conf", b"new %d" % n + b"x" * 10_000) for n in range(4)]
assert not root.write(files).is_complete
os.remove("/mnt/large")
batch = root.write(files)
root.discard(batch.replaced)
""")

    assert seen["found"] == {f"{n}.conf": f"new {n}" for n in range(4)}
    assert {told[0] for told in seen["told"]} == {"WRITTEN"}


def test_a_root_that_is_read_only_keeps_all_old_files_and_says_so():
    seen = played("""
mount("-o", "remount,ro")
batch = root.write([WantedFile(f"/etc/slurm/{n}.conf", b"new %d" % n) for n in range(4)])
""")

    assert seen["found"] == OLD
    assert seen["told"][0][:2] == ["FAILED", "READ_ONLY"]
    assert "mounted read-only" in seen["told"][0][2]


def test_a_root_that_becomes_read_only_between_two_files_says_which_are_new():
    """Nothing can be put back then; each path still holds one content or the other."""
    seen = played("""
from slurm_operator.agents.sconfig.calls import Calls

class Remounting(Calls):
    count = 0

    def exchange(self, one, other, *, at):
        self.count += 1
        if self.count == 3:
            mount("-o", "remount,ro")
        super().exchange(one, other, at=at)

batch = Root("/mnt", Remounting()).write([WantedFile(f"/etc/slurm/{n}.conf", b"new %d" % n) for n in range(4)])
mount("-o", "remount,rw")
root.sweep(["/etc/slurm/x"])
""")

    assert seen["found"] == {"0.conf": "new 0", "1.conf": "new 1", "2.conf": "old 2", "3.conf": "old 3"}
    assert [told[0] for told in seen["told"]] == ["FAILED", "FAILED", "FAILED", "HELD_BACK"]
    assert "holds the new content" in seen["told"][0][2]
    assert "holds the new content" not in seen["told"][2][2]
