"""What every shared root has, whatever its content is."""

import os
import re
import stat
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from . import places
from .failure import Failure
from .layout import GPU_FLAG, KEPT, LIBRARY_DIRECTORIES, MOUNT_POINTS, PLACEHOLDER_BYTES
from .report import Report
from .settings import Settings

_VERSIONED = re.compile(r"^lib.+\.so\.\d[\d.]*$")


def finish(root: int, settings: Settings, report: Report) -> None:
    """Mount points, the mode that sshd asks for, and nothing left of another cluster's GPU workers."""
    status = os.fstat(root)
    if (status.st_uid, status.st_gid) != (0, 0):
        os.chown(root, 0, 0)
    if stat.S_IMODE(status.st_mode) != 0o755:
        os.fchmod(root, 0o755)
    for path, mode in MOUNT_POINTS.items():
        report.tick()
        if path in KEPT and places.lookup(root, path) is not None:
            continue
        places.make_directory(root, path, mode)
    for path in settings.mount_points:
        if places.lookup(root, path) is None:
            places.make_directory(root, path, 0o755)
    places.remove(root, GPU_FLAG)
    for path in LIBRARY_DIRECTORIES:
        with suppress(FileNotFoundError), places.opened(root, path) as directory:
            _remove_placeholders(directory)


def _remove_placeholders(directory: int) -> None:
    for name in os.listdir(directory):
        if _VERSIONED.match(name):
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_size < PLACEHOLDER_BYTES:
                os.unlink(name, dir_fd=directory)


def give_root_a_key(root: int, report: Report) -> None:
    """root of any node may log in to any other; a key that is there stays."""
    try:
        places.make_directory(root, "root/.ssh", 0o700)
        if places.read(root, "root/.ssh/id_ecdsa") is None:
            with tempfile.TemporaryDirectory() as directory:
                key = Path(directory) / "id_ecdsa"
                command = [
                    "ssh-keygen",
                    "-q",
                    "-t",
                    "ecdsa",
                    "-N",
                    "",
                    "-C",
                    "root@shared-root",
                    "-f",
                    str(key),
                ]
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                # The private one last: where it is, the public one is its own.
                places.write(root, "root/.ssh/id_ecdsa.pub", key.with_suffix(".pub").read_bytes())
                places.write(root, "root/.ssh/id_ecdsa", key.read_bytes(), 0o600)
        public = places.read(root, "root/.ssh/id_ecdsa.pub") or b""
        authorized = places.read(root, "root/.ssh/authorized_keys") or b""
        if public.strip() and public.strip() not in authorized.splitlines():
            lines = authorized if not authorized or authorized.endswith(b"\n") else authorized + b"\n"
            places.write(root, "root/.ssh/authorized_keys", lines + public, 0o600)
    except Failure as failure:
        report.note(f"root has no ssh key to other nodes: {failure.message}")
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        report.note(f"root has no ssh key to other nodes: {error}.")
