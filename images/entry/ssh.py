"""sshd and sssd beside a Slurm daemon, kept running by supervisord."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

ADOPT_OPTIONS = "action_adopt_failure=deny action_generic_failure=deny"

_SSHD_CONFIG = Path("/etc/ssh/sshd_config")
_SSSD_CONFIG = Path("/etc/sssd/sssd.conf")
_PAM_SSHD = Path("/etc/pam.d/sshd")
_SUPERVISOR_CONFIG = Path("/run/slurm-operator-supervisord.conf")

# Files below /etc/supervisor/conf.d add programs, as on any machine.
_SUPERVISOR = """\
[unix_http_server]
file=/run/supervisor.sock
chmod=0700

[supervisord]
nodaemon=true
user=root
logfile=/dev/null
logfile_maxbytes=0
pidfile=/run/supervisord.pid

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl=unix:///run/supervisor.sock

[include]
files=/etc/supervisor/conf.d/*.conf
"""


def is_mounted(path: Path, mount_table: str) -> bool:
    """Whether the pod puts a file of its own in this place; `mount_table` is /proc/self/mountinfo."""
    return any(line.split()[4] == str(path) for line in mount_table.splitlines())


def wants_sshd() -> bool:
    """A pod that wants sshd brings its configuration."""
    return is_mounted(_SSHD_CONFIG, Path("/proc/self/mountinfo").read_text())


def helper_programs(environment: Mapping[str, str], *, sshd: bool) -> dict[str, str]:
    """What supervisord shall keep running: names and command lines."""
    programs: dict[str, str] = {}
    if sshd:
        programs["sshd"] = f"/usr/sbin/sshd -D -e {environment.get('SSHD_OPTIONS', '')}".strip()
    if _SSSD_CONFIG.exists():
        programs["sssd"] = f"/usr/sbin/sssd -i {environment.get('SSSD_OPTIONS', '')}".strip()
    return programs


def supervisor_config(programs: Mapping[str, str]) -> str:
    """supervisord's configuration; what the programs say goes to the container's own output."""
    return _SUPERVISOR + "".join(_program(name, command) for name, command in programs.items())


def supervisord(programs: Mapping[str, str]) -> list[str]:
    """The command that keeps the programs running, with its configuration written."""
    _SUPERVISOR_CONFIG.write_text(supervisor_config(programs))
    return ["supervisord", "--nodaemon", f"--configuration={_SUPERVISOR_CONFIG}"]


def prepare_sshd() -> None:
    """The directory it wants, and host keys where the pod brings none."""
    make_run_directory()
    subprocess.run(["ssh-keygen", "-A"], stdout=subprocess.DEVNULL, check=False)


def make_run_directory() -> None:
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)


def is_supervised(environment: Mapping[str, str]) -> bool:
    """Whether supervisord has started this program, and starts it again when it ends."""
    return "SUPERVISOR_ENABLED" in environment


def admit_only_jobs(environment: Mapping[str, str]) -> None:
    """Lets ssh in only where the user has a job, and puts the session into that job."""
    options = environment.get("PAM_SLURM_ADOPT_OPTIONS") or ADOPT_OPTIONS
    text = with_adopt(_PAM_SSHD.read_text(), options)
    temporary = _PAM_SSHD.with_name(".sshd.new")
    temporary.write_text(text)
    temporary.replace(_PAM_SSHD)


def with_adopt(pam: str, options: str) -> str:
    """sshd's PAM file with pam_slurm_adopt, once, before the rules for all accounts.

    After them it would never be asked about local users: one of those rules is enough to let them in.
    """
    line = f"account    required     pam_slurm_adopt.so {options}"
    lines = [kept for kept in pam.splitlines() if "pam_slurm_adopt.so" not in kept]
    included = (at for at, kept in enumerate(lines) if kept.split()[:2] == ["@include", "common-account"])
    position = next(included, len(lines))
    return "\n".join([*lines[:position], line, *lines[position:]]) + "\n"


def _program(name: str, command: str) -> str:
    # supervisord reads % itself.
    return f"""
[program:{name}]
command={command.replace("%", "%%")}
autorestart=true
startretries=1000000
stopasgroup=true
stdout_logfile=/dev/fd/1
stdout_logfile_maxbytes=0
stderr_logfile=/dev/fd/2
stderr_logfile_maxbytes=0
"""
