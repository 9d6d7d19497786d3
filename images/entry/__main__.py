"""`entry DAEMON ARGUMENT ...`: the first program of every container."""

import os
import pwd
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from . import database, passive_checks, ssh, submit_check
from .follow import follow
from .leave import leave
from .memory_shortage import spare_slurmd
from .options import argument_words, machine, resource_items, with_node_items, words
from .power import power
from .reach import wait_for_slurmctld
from .saved import forgive_unsaved_usage
from .shared_root import check, joining, populate
from .shared_root.failure import Failure
from .slurmctld import node_name
from .watch import LEAVING, watch

_SOCKET_DIRECTORY = Path("/run/slurm")
_NODE_NAME = Path("/run/slurm-operator-node")  # What this worker is called, for commands that come later.


def slurmctld(arguments: Sequence[str]) -> int:
    if forgive_unsaved_usage():
        print(
            "slurmctld ended before it first saved the usage of accounts; it goes on without", file=sys.stderr
        )
    root = joining.root_of(os.environ)
    beside = partial(joining.link_accounts_when_populated, root) if root is not None else None
    return follow(["slurmctld", "--systemd", *_options("SLURMCTLD_OPTIONS", arguments)], beside)


def slurmd(arguments: Sequence[str]) -> int:
    """slurmd is the container, unless it is one program of several: when it ends, so does everything."""
    if ssh.is_supervised(os.environ):
        check.wait_until_usable(os.environ)
    else:
        LEAVING.unlink(missing_ok=True)  # A restarted container is not leaving.
        if code := _joined_root("slurmd"):
            return code
        _start_helpers()
        # After them: sshd passes its own adjustment on to sessions of users.
        spare_slurmd()
    options = _options("SLURMD_OPTIONS", arguments)
    items = resource_items(os.environ, machine(_hardware(), options))
    command = ["slurmd", "--systemd", *with_node_items(options, items)]
    name = node_name(options, socket.gethostname())
    _NODE_NAME.write_text(name)
    every_s = float(os.environ.get("SLURMD_WATCH_SECONDS", "30"))
    wait_for_slurmctld(options)
    return follow(command, beside=partial(watch, name, every_s))


def worker(_arguments: Sequence[str]) -> int:
    """The first program of a container with slurmd and sshd on a shared root, under supervisord.

    Neither starts before the root is whole: the pod says what is wrong instead of trying again and again.
    slurmd that supervisord starts again is still leaving; only a new container is not.
    """
    LEAVING.unlink(missing_ok=True)
    if code := _joined_root("slurmd", complemented=True):
        return code
    ssh.make_run_directory()
    return _become(ssh.supervisord(ssh.helper_programs(os.environ, sshd=False)))


def slurmdbd(arguments: Sequence[str]) -> int:
    return _become(["slurmdbd", "-D", *_options("SLURMDBD_OPTIONS", arguments)])


def slurmrestd(arguments: Sequence[str]) -> int:
    return _become(["slurmrestd", *_options("SLURMRESTD_OPTIONS", arguments)])


def sackd(arguments: Sequence[str]) -> int:
    _become_slurm()
    options = _options("SACKD_OPTIONS", arguments)
    wait_for_slurmctld(options)
    return follow(["sackd", "--systemd", *options])


def login(arguments: Sequence[str]) -> int:
    """sackd, sshd and sssd, each started again when it ends."""
    if code := _joined_root("sshd", complemented=True):
        return code
    ssh.prepare_sshd()
    programs = ssh.helper_programs(os.environ, sshd=True)
    if _wants_sackd(arguments):
        programs = {"sackd": shlex.join([sys.argv[0], "sackd", *arguments]), **programs}
    return _become(ssh.supervisord(programs))


def mariadb(arguments: Sequence[str]) -> int:
    Path("/run/mysqld").mkdir(exist_ok=True)
    database.prepare(database.DATA, database.TEMPLATE)
    return _become(database.command(database.account_sql(os.environ), arguments))


def leaving(arguments: Sequence[str]) -> int:
    """For the pod's preStop: drains this worker and waits for its jobs."""
    name = _NODE_NAME.read_text() if _NODE_NAME.exists() else node_name(arguments, socket.gethostname())
    return leave(name, os.environ.get("POD_UID", ""))


def populate_root(_arguments: Sequence[str]) -> int:
    """For a Job: fills the root that all nodes share."""
    return populate.main(os.environ)


def check_root(_arguments: Sequence[str]) -> int:
    """Whether job steps can run in the shared root."""
    return check.main(os.environ)


def complement_root(_arguments: Sequence[str]) -> int:
    """Shows this node's /proc, /dev, /tmp and /run in the shared root, for sessions that start there."""
    try:
        joining.complement(os.environ)
    except Failure as failure:
        return check.refuse(failure.message, "sshd")
    return 0


def submitting(_arguments: Sequence[str]) -> int:
    """For the pod of a check: submits its Slurm jobs."""
    return submit_check.main(os.environ)


def run_checks(_arguments: Sequence[str]) -> int:
    """For Prolog, Epilog and HealthCheckProgram: runs the checks of CHECKS_CONTEXT."""
    return passive_checks.main(os.environ)


def power_call(arguments: Sequence[str]) -> int:
    """For slurmctld: hands a wish of its power saving over to power-manager."""
    return power(arguments, os.environ)


ENTRIES: Mapping[str, Callable[[Sequence[str]], int]] = {
    "slurmctld": slurmctld,
    "slurmd": slurmd,
    "worker": worker,
    "slurmdbd": slurmdbd,
    "slurmrestd": slurmrestd,
    "sackd": sackd,
    "login": login,
    "mariadb": mariadb,
    "leave": leaving,
    "populate-root": populate_root,
    "check-root": check_root,
    "complement-root": complement_root,
    "submit-check": submitting,
    "run-checks": run_checks,
    "power": power_call,
}


def main(argv: Sequence[str]) -> int:
    if len(argv) < 2 or argv[1] not in ENTRIES:
        print(f"usage: entry {'|'.join(ENTRIES)} [ARGUMENT ...]", file=sys.stderr)
        return 2
    return ENTRIES[argv[1]](argv[2:])


def _options(variable: str, arguments: Sequence[str]) -> list[str]:
    return [*words(os.environ.get(variable, ""), os.environ), *argument_words(arguments, os.environ)]


def _joined_root(daemon: str, *, complemented: bool = False) -> int:
    """0 when this container can use its shared root and has joined it, or has none; else its exit code."""
    root = joining.root_of(os.environ)
    if root is None:
        return 0
    if code := check.main(os.environ, daemon):
        return code
    joining.link_accounts(root)
    joining.open_tmp()
    joining.make_node_outputs(root)
    return complement_root(()) if complemented else 0


def _start_helpers() -> None:
    """sshd and sssd beside slurmd where they are wanted."""
    wants_sshd = ssh.wants_sshd()
    if wants_sshd:
        ssh.prepare_sshd()
        ssh.admit_only_jobs(os.environ)
    if programs := ssh.helper_programs(os.environ, sshd=wants_sshd):
        subprocess.Popen(ssh.supervisord(programs))


def _wants_sackd(arguments: Sequence[str]) -> bool:
    """Not where clients find files and munged: it has nothing to fetch, and no key to answer with."""
    return bool(_options("SACKD_OPTIONS", arguments)) or _sack_key().exists()


def _sack_key() -> Path:
    return Path(os.environ.get("SLURM_SACK_KEY", "/etc/slurm/slurm.key"))


def _become_slurm() -> None:
    """slurmctld sends a changed configuration only to a sackd of its own user, who must own the key.

    Where there is munge there is no key.
    """
    slurm = pwd.getpwnam(os.environ.get("SLURM_USER", "slurm"))
    key = _sack_key()
    if os.geteuid() != 0 or (key.exists() and key.stat().st_uid != slurm.pw_uid):
        return
    _SOCKET_DIRECTORY.mkdir(exist_ok=True)
    os.chown(_SOCKET_DIRECTORY, slurm.pw_uid, slurm.pw_gid)
    os.setgroups([])
    os.setgid(slurm.pw_gid)
    os.setuid(slurm.pw_uid)


def _hardware() -> dict[str, str]:
    said = subprocess.run(["slurmd", "-C"], capture_output=True, text=True, check=False).stdout
    return dict(word.split("=", 1) for word in said.split() if "=" in word)


def _become(command: Sequence[str]) -> int:
    """Replaces this program; there is nothing to do beside the daemon."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(command[0], list(command))  # noqa: S606


if __name__ == "__main__":
    sys.exit(main(sys.argv))
