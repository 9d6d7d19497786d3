"""Files of login pods and workers: sshd_config, limits.conf, supervisord.conf and their like."""

from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.amounts import amount, amount_in
from slurm_operator.api.nebius.slurm_nodes import DEFAULT_HIGH, DEFAULT_MAX, SlurmNodeLogin
from slurm_operator.api.shared import names as shared_names

SSHD_CONFIG: Final = "sshd_config"
AUTHORIZED_KEYS: Final = "authorized_keys"
LIMITS_CONF: Final = "limits.conf"
SUPERVISORD_CONF: Final = "supervisord.conf"
SYSCTL_CONF: Final = "sysctl.conf"
USER_ISOLATION: Final = "user-isolation.conf"

SYSCTL: Final = "vm.max_map_count=655300\n"

NO_LIMITS: Final = "# No limits of its own: those of the container runtime count.\n"

_UNLIMITED: Final = (
    "core", "data", "fsize", "sigpending", "memlock", "rss", "msgqueue", "rtprio", "stack", "cpu", "nproc",
    "as", "locks",
)  # fmt: skip
_NUMBERS: Final = (("nofile", "1048576"), ("nice", "-20"))

_SUPERVISORD: Final = """\
[supervisord]
nodaemon=true
logfile=/dev/null
logfile_maxbytes=0
pidfile=/var/run/supervisord.pid
"""
_PROGRAM: Final = """
[program:{name}]
priority={priority}
command={command}
stdout_logfile=/dev/fd/1
stdout_logfile_maxbytes=0
stderr_logfile=/dev/fd/2
stderr_logfile_maxbytes=0
redirect_stderr=true
autostart=true
autorestart=true
startsecs=0
stopasgroup=true
killasgroup=true
stopsignal=TERM
stopwaitsecs=10
"""


def sshd_config(login: SlurmNodeLogin) -> str:
    """sshd of login pods and of workers, which listen on the same port and know users the same way."""
    directory = "/etc/ssh/sshd_keys"
    sssd = (
        ("AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys", "AuthorizedKeysCommandUser root")
        if login.sssd is not None and login.sssd.is_given
        else ()
    )
    lines = (
        f"Port {login.sshd.port or shared_names.SSH_PORT}",
        "PermitRootLogin yes",
        "PasswordAuthentication no",
        "ChallengeResponseAuthentication no",
        "UsePAM yes",
        "AcceptEnv LANG LC_*",
        "X11Forwarding no",
        "AllowTcpForwarding yes",
        "Subsystem sftp internal-sftp",
        *(f"HostKey {directory}/ssh_host_{kind}_key" for kind in ("rsa", "ecdsa", "ed25519")),
        f"ChrootDirectory {names.ROOT}",
        "ClientAliveInterval 3600",
        "ClientAliveCountMax 5",
        "MaxStartups 100:50:300",
        "LoginGraceTime 120",
        "MaxAuthTries 4",
        "LogLevel DEBUG3",
        *sssd,
        "",
        "Match User root",
        f"    AuthorizedKeysFile /root/.ssh/authorized_keys {names.ROOT}/root/.ssh/authorized_keys",
        "",
        "Match User *",
        "    LogLevel INFO",
        "",
    )
    return "\n".join(lines)


def authorized_keys(keys: list[str]) -> str:
    return "".join(f"{key.strip()}\n" for key in keys if key.strip())


def limits(written: str) -> str:
    """limits.conf of daemons and login pods."""
    return f"{written.rstrip()}\n" if written.strip() else NO_LIMITS


def worker_limits(written: str) -> str:
    """limits.conf of workers: jobs are limited by Slurm, so nothing else limits them."""
    if written.strip():
        return f"{written.rstrip()}\n"
    wanted = [*((item, "unlimited") for item in _UNLIMITED), *_NUMBERS]
    return "".join(f"* {kind} {item} {value}\n" for item, value in wanted for kind in ("soft", "hard"))


def supervisord_conf(slurmd: str) -> str:
    """slurmd and sshd in one container; when slurmd is started again, its jobs go on."""
    sshd = "/usr/sbin/sshd -D -e -f /mnt/ssh-configs/sshd_config"
    programs = (("slurmd", 1, slurmd), ("sshd", 10, sshd))
    return _SUPERVISORD + "".join(
        _PROGRAM.format(name=name, priority=priority, command=command) for name, priority, command in programs
    )


def user_isolation(login: SlurmNodeLogin) -> str:
    """Limits for each user of a login pod, as the entry point of the pod reads them."""
    wished, memory = login.user_isolation, amount_in(login.sshd.resources, "memory")
    lines = [f"SOPERATOR_USER_ISOLATION_ENABLED={'true' if wished.enabled else 'false'}"]
    for name, said, share in (
        ("MEMORY_HIGH", wished.memory_high, DEFAULT_HIGH),
        ("MEMORY_MAX", wished.memory_max, DEFAULT_MAX),
    ):
        bytes_ = amount(said) if said is not None else memory * share if memory is not None else None
        if bytes_ is not None:
            lines.append(f"SOPERATOR_USER_ISOLATION_{name}={int(bytes_)}")
    lines.append(f"SOPERATOR_USER_ISOLATION_CPU_WEIGHT={wished.cpu_weight}")
    return "".join(f"{line}\n" for line in lines)
