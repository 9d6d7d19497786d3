"""Roots in miniature for the tests of the populate program, and a run of it that ends between two file calls."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from images.entry.shared_root.populate import populate
from images.entry.shared_root.report import Report
from images.entry.shared_root.settings import Settings

MARKER = "etc/soperator-jail-populated"
KILLED = 137

PASSWD = "root:x:0:0:root:/root:/bin/bash\nsys:x:50:50::/:/usr/sbin/nologin\n"
OLD_PASSWD = (
    "root:x:0:0:me:/root:/bin/zsh\nsys:x:51:51::/:/usr/sbin/nologin\nada:x:1000:1000::/data/ada:/bin/sh\n"
)

IMAGE = {
    "usr/bin/sh": "shell 2",
    "usr/bin/tool": "tool 2",
    "usr/lib/new/file": "new",
    "etc/passwd": PASSWD,
    "etc/group": "root:x:0:\nsudo:x:27:\n",
    "etc/shadow": "root:*:1::::::\nsys:*:1::::::\n",
    "etc/hosts": "of the builder",
    "root/.bashrc": "bashrc 2",
    "home/image-user/file": "of the image",
}
OLD = {
    "usr/bin/sh": "shell 1",
    "usr/bin/tool": "tool 1",
    "usr/bin/installed-by-a-user": "mine",
    "etc/passwd": OLD_PASSWD,
    "etc/group": "root:x:0:\nsudo:x:27:ada\nada:x:1000:\n",
    "etc/shadow": "root:$6$secret:1::::::\nsys:*:1::::::\nada:$6$ada:1::::::\n",
    "etc/ssh/ssh_host_ed25519_key": "host key",
    "etc/slurm/slurm.conf": "ClusterName=a",
    "root/.ssh/id_ecdsa": "private",
    "root/.ssh/id_ecdsa.pub": "public",
    "root/.ssh/authorized_keys": "public\n",
    "home/ada/.ssh/authorized_keys": "key of ada",
    "data/ada/results": "months of work",
    "srv/others": "others",
    MARKER: '{"source": "archive", "identity": "sha256:1"}\n',
}


def make_tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def make_archive(path: Path, files: dict[str, str] | None = None) -> Path:
    tree = make_tree(path.parent / f"{path.name}-tree", IMAGE if files is None else files)
    subprocess.run(
        ["tar", "--create", f"--file={path}", "--auto-compress", f"--directory={tree}", "."], check=True
    )
    return path


def files_of(root: Path, leaving_out: Iterable[str] = ()) -> dict[str, str]:
    """Contents of files and targets of links below a root."""
    found: dict[str, str] = {}
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory) / name
            relative = str(path.relative_to(root))
            if relative not in leaving_out:
                is_link = stat.S_ISLNK(path.lstat().st_mode)
                found[relative] = f"-> {path.readlink()}" if is_link else path.read_text()
    return found


def settings(root: Path, source: Path, **changes: object) -> Settings:
    plain = Settings(root=root, source=str(source), must_be_mounted=False)
    return replace(plain, **changes)  # type: ignore[arg-type]


def run(root: Path, source: Path, **changes: object) -> dict[str, object]:
    return populate(settings(root, source, **changes), Report())


def calls_until_killed(root: Path, source: Path, at: int, changes: dict[str, object]) -> bool:
    """Whether a run of its own process was killed before its call number `at`; else it has reached its end."""
    child = os.fork()
    if child == 0:
        _die_at(at)
        run(root, source, **changes)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == KILLED


_CHANGING = (
    *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod", "os.chown", "os.setxattr"),
    *("shutil.rmtree", "subprocess.Popen"),
)


def _die_at(at: int) -> None:
    """Ends this process before that call which changes a file; between two of them all moments are alike."""
    seen = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        is_write = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        seen += event in _CHANGING or bool(is_write)
        if seen == at:
            os._exit(KILLED)

    sys.addaudithook(count)
