"""The GPU driver in the shared root: each worker with GPUs shows the files of its own Kubernetes node there.

The container runtime mounts the node's driver into a container with GPUs, file by file. Programs in the root
look for these files at the same places, so each is mounted there too, on a stand-in of a few bytes that all
nodes share. Soperator's pods do it by the same lock, size and flag, and its tools wait for the flag.
"""

import errno
import fcntl
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import places
from .failure import Failure, Reason
from .layout import GPU_FLAG, LIBRARY_DIRECTORIES, PLACEHOLDER_BYTES

STAND_INS_LOCK = "etc/complement_jail_gpu_placeholders.lock"
LINKER_LOCK = "etc/complement_jail_ldconfig.lock"
STAND_IN = b"Stands in for the GPU driver.\n"
assert len(STAND_IN) < PLACEHOLDER_BYTES

# Which files that are mounted on their own belong to the driver of NVIDIA.
_LIBRARY = re.compile(
    r"lib(cuda|cudadebugger|nvcuvid|nvoptix|nvidia-[\w-]+|(EGL|GLESv1_CM|GLESv2|GLX|vdpau)_nvidia)\.so(\.\d+)+"
)
_PROGRAM = re.compile(r"(nvidia-(cuda-mps-\w+|debugdump|persistenced|smi)|nv-fabricmanager)")
_PROGRAM_DIRECTORY = "usr/bin"
_SMALLEST_BYTES = 1024

# By this one, tools find out which release of the driver a node has.
_TELLING = "libnvidia-ml.so"
_SONAME = "libnvidia-ml.so.1"

_PATIENCE_S = 60.0
_POLL_S = 0.2


def is_wanted(environment: Mapping[str, str]) -> bool:
    return environment.get("NODESET_GPU_ENABLED") == "true"


def mounted_files(mountinfo: str) -> list[str]:
    """Driver files that somebody has mounted into this container, without the leading slash."""
    points = (_unescaped(line.split()[4]).strip("/") for line in mountinfo.splitlines())
    return sorted({point for point in points if _is_of_driver(point) and Path(f"/{point}").is_file()})


def _is_of_driver(path: str) -> bool:
    directory, _, name = path.rpartition("/")
    pattern = _LIBRARY if directory in LIBRARY_DIRECTORIES else _PROGRAM
    return directory in (*LIBRARY_DIRECTORIES, _PROGRAM_DIRECTORY) and pattern.fullmatch(name) is not None


def _unescaped(text: str) -> str:
    """The kernel writes blanks in paths as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def prepare(root: Path, files: Sequence[str]) -> list[str]:
    """Makes a stand-in for each file, and gives back what complement-root is told. Raises Failure."""
    for path in files:
        if (size := Path(f"/{path}").stat().st_size) <= _SMALLEST_BYTES:
            raise Failure(
                Reason.BROKEN_SOURCE,
                f"/{path} has {size} bytes, so it is no file of a GPU driver. Look at how the container "
                "runtime of this Kubernetes node shows its driver to containers.",
            )
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _locked(descriptor, STAND_INS_LOCK, "another worker that prepares the root for its GPU driver"):
            for path in files:
                _stand_in(descriptor, path)
    except OSError as error:
        raise Failure(Reason.FILE_SYSTEM, f"Cannot prepare the root for the GPU driver: {error}.") from error
    finally:
        os.close(descriptor)
    return [f"file=/{path}:/{path}" for path in files]


def _stand_in(root: int, path: str) -> None:
    directory, _, name = path.rpartition("/")
    with places.opened(root, directory) as opened:
        kind = places.kind_of(opened, name)
    if kind is None:
        mode = stat.S_IMODE(Path(f"/{path}").stat().st_mode)
        places.write(root, path, STAND_IN, mode)
    elif not stat.S_ISREG(kind):
        raise Failure(
            Reason.UNSAFE_ROOT,
            f"/{path} in the root is a link or a directory, and the GPU driver of the node has a file there. "
            "Remove it.",
        )


def finish(root: Path, files: Sequence[str]) -> None:
    """Brings the linker's list of libraries up to date, and sets the flag. Raises Failure."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _locked(descriptor, LINKER_LOCK, "another worker that runs ldconfig in the root"):
            if _listed(root) != _candidate(root):
                _ldconfig(root)
            _check_release(root, files)
        directory, _, name = GPU_FLAG.rpartition("/")
        with places.opened(descriptor, directory) as opened:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            os.close(os.open(name, flags, 0o644, dir_fd=opened))
    except OSError as error:
        raise Failure(Reason.FILE_SYSTEM, f"Cannot make the GPU driver known: {error}.") from error
    finally:
        os.close(descriptor)


def _check_release(root: Path, files: Sequence[str]) -> None:
    """One link leads to one library, so all nodes need the same release."""
    ours = next((path for path in files if Path(path).name.startswith(f"{_TELLING}.")), None)
    if ours is None or (there := _leads_to(root, ours)) == Path(ours).name:
        return
    _ldconfig(root)
    if (there := _leads_to(root, ours)) != Path(ours).name:
        raise Failure(
            Reason.BROKEN_SOURCE,
            f"{_SONAME} in the root leads to {there or 'nothing'}, and the driver of this Kubernetes node "
            f"has {Path(ours).name}. All nodes with GPUs of one root need the same release of the driver.",
        )


def _leads_to(root: Path, library: str) -> str:
    link = (root / library).with_name(_SONAME)
    return link.readlink().name if link.is_symlink() else ""


def _candidate(root: Path) -> list[str]:
    """What the list would be; it is made in this node's own /tmp, and nothing else is changed."""
    with tempfile.TemporaryDirectory(dir=root / "tmp") as directory:
        cache = f"/tmp/{Path(directory).name}/ld.so.cache"  # noqa: S108
        _ldconfig(root, "-X", "-C", cache)
        return _listed(root, "-C", cache)


def _listed(root: Path, *arguments: str) -> list[str]:
    """Libraries and where they are, as the linker's list has them; none without a list."""
    done = _run("ldconfig", "-r", str(root), "-p", *arguments)
    return [line for line in done.stdout.splitlines() if "=>" in line]


def _ldconfig(root: Path, *arguments: str) -> None:
    """The container's own program, in the root: users may have replaced that of the root."""
    done = _run("ldconfig", "-r", str(root), *arguments)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        print(f"ldconfig in the shared root: {'; '.join(lines[-3:])}", file=sys.stderr, flush=True)


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )


@contextmanager
def _locked(root: int, path: str, who: str) -> Iterator[None]:
    """One node at a time, for as long as Soperator's pods wait as well."""
    directory, _, name = path.rpartition("/")
    with places.opened(root, directory) as opened:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        lock = os.open(name, flags, 0o644, dir_fd=opened)
    try:
        _wait_for(lock, path, who)
        yield
    finally:
        os.close(lock)


def _wait_for(lock: int, path: str, who: str) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            if time.monotonic() > until:
                raise Failure(
                    Reason.BUSY, f"Waited for {_PATIENCE_S:g} s for {who} (/{path} in the root is locked)."
                ) from error
            time.sleep(_POLL_S)
        else:
            return


def say_missing(files: Iterable[str]) -> None:
    """A worker that should have GPUs and has no driver still starts: its other jobs can run."""
    if not [*files]:
        print(
            "This worker should have GPUs, but no file of their driver is mounted in its container, so jobs "
            "find none. The container runtime mounts it where slurmd asks for nvidia.com/gpu and the "
            "Kubernetes node has the NVIDIA container toolkit.",
            file=sys.stderr,
            flush=True,
        )
