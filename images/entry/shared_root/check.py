"""Tries the shared root as job steps will find it, before slurmd starts.

A root that steps cannot enter fails every batch job, and Slurm drains the node of each: one broken root
empties a cluster. So slurmd starts only when a program has run inside.
"""

import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from . import places
from .failure import Failure
from .layout import MARKER, WORK
from .marker import read_marker
from .report import TERMINATION_LOG, fitting

ENTER_ROOT = "/usr/lib/slurm-operator/enter-root"

_SPOOL = "/var/spool/slurmd"
_PATIENCE_S = 60.0
_PAUSE_S = 10.0
_OUTPUT_BYTES = 1 << 16
_COULD_NOT_ENTER = 125
_VERSION = re.compile(r"^slurm(?:-wlm)? (\d+\.\d+)\.", re.MULTILINE)

_CONF = "ClusterName=check\nSlurmctldHost=localhost\n"

# As nobody, with no right that a job would not have: users may have replaced any program of the root.
_INSIDE = """
test -r /proc/self/stat || echo "/proc does not show processes"
test -c /dev/null && : > /dev/null || echo "/dev/null cannot be written"
test -w /tmp || echo "/tmp cannot be written by users"
"""


def main(environment: Mapping[str, str], daemon: str = "slurmd") -> int:
    """Whether a daemon may start, as an exit code; the log and the termination message say what is wrong."""
    problem = problem_with_root(environment)
    return 0 if problem is None else refuse(problem, daemon)


def wait_until_usable(environment: Mapping[str, str]) -> None:
    """For slurmd that is started again beside others: comes back when the root can be entered."""
    while main(environment):
        time.sleep(_PAUSE_S)


def refuse(problem: str, daemon: str) -> int:
    """The exit code of a container that cannot use its root; it says why in its log and to the kubelet."""
    print(f"{daemon} does not start: {problem}", file=sys.stderr, flush=True)
    message = {"result": "Failed", "reason": "BrokenSharedRoot", "message": problem}
    with suppress(OSError):  # Outside Kubernetes there may be none; the line above says the same.
        TERMINATION_LOG.write_bytes(fitting(message))
    return 1


def problem_with_root(environment: Mapping[str, str]) -> str | None:
    """What is wrong with the root that SHARED_ROOT describes, in the plugin's arguments; None: nothing."""
    arguments = shlex.split(environment.get("SHARED_ROOT", ""))
    if not arguments:
        return None
    given = dict(argument.partition("=")[::2] for argument in arguments)
    try:
        _make_spool(given.get("spool", _SPOOL))
        return (
            _problem_outside(Path(given.get("root", "")), given.get("marker", f"/{MARKER}"))
            or _problem_inside(arguments)
            or _problem_with_clients(arguments, Path(given.get("tmp", "/tmp")), environment)  # noqa: S108
        )
    except Failure as failure:
        return failure.message
    except OSError as error:
        return f"The shared root cannot be read: {error.strerror or error} ({error.filename})."


def _make_spool(path: str) -> None:
    """slurmd makes its spool directory when it starts; steps are shown it, so it is wanted before."""
    if path != "none":
        Path(path).mkdir(mode=0o755, parents=True, exist_ok=True)


def _problem_outside(root: Path, marker: str) -> str | None:
    """What can be seen without entering."""
    if not root.is_dir():
        return f"The shared root {root} is not a directory: is the volume mounted?"
    if os.statvfs(root).f_flag & os.ST_RDONLY:
        return (
            f"The shared root {root} is mounted read-only; users and jobs write to it. Mount it read-write."
        )
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if marker == f"/{MARKER}" and read_marker(descriptor) is None:
            state = (
                "is being populated, or that was interrupted"
                if places.lookup(descriptor, WORK)
                else "is not populated"
            )
            return (
                f"The shared root {root} {state}: it has no {marker}. Wait for the Job that populates it, or "
                "start it again."
            )
    finally:
        os.close(descriptor)
    return None


def _problem_inside(arguments: Sequence[str]) -> str | None:
    code, said = _run_inside(arguments, "/bin/sh", "-c", _INSIDE)
    if code == _COULD_NOT_ENTER:
        return said
    if code != 0:
        return (
            f"/bin/sh does not run in the shared root ({_ending(code)}): {said or 'it said nothing'}. "
            "Populate it again with overwrite."
        )
    return f"In the shared root {'; '.join(said.splitlines())}." if said else None


def _problem_with_clients(arguments: Sequence[str], tmp: Path, environment: Mapping[str, str]) -> str | None:
    """Clients load the plugin too, and refuse one of another release: `srun` in a job would fail."""
    if environment.get("SHARED_ROOT_CLIENTS") == "any":
        return None
    # A client wants a configuration even to say its version. Steps are shown this directory as /tmp.
    with tempfile.NamedTemporaryFile("w", dir=tmp, prefix="slurm-operator-", suffix=".conf") as conf:
        conf.write(_CONF)
        conf.flush()
        os.fchmod(conf.fileno(), 0o644)
        inside = f"SLURM_CONF=/tmp/{Path(conf.name).name}"
        code, said = _run_inside(arguments, "/usr/bin/env", inside, "/usr/bin/srun", "--version")
    theirs = _series(said)
    remedy = "Populate the root with overwrite from a matching image, or set SHARED_ROOT_CLIENTS=any."
    if code != 0 or theirs is None:
        return (
            f"srun does not run in the shared root ({_ending(code)}): {said or 'it said nothing'}. {remedy}"
        )
    mine = _series(subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=False).stdout)
    if mine != theirs:
        return (
            f"The Slurm clients in the shared root are {theirs} and slurmd is {mine}: `srun` in jobs would "
            f"fail. {remedy}"
        )
    return None


def _run_inside(arguments: Sequence[str], *program: str) -> tuple[int, str]:
    """Exit code and output of a program of the root; it may be anything, so both have limits."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [ENTER_ROOT, *arguments, "--", *program],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
            preexec_fn=_limit_output,
        )
        try:
            code = process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return 128 + signal.SIGALRM, f"{program[0]} did not end within {_PATIENCE_S:g} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return code, output.read(_OUTPUT_BYTES).decode(errors="replace").strip()


def _limit_output() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT_BYTES, _OUTPUT_BYTES))


def _series(said: str) -> str | None:
    found = _VERSION.search(said)
    return found[1] if found else None


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
