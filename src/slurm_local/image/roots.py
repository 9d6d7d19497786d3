"""The two root filesystems: one with all of Slurm, one with just Python."""

from pathlib import Path

from slurm_local.errors import LocalError
from slurm_local.image.debian import SUITE, BuiltRoot, DebianRoot, User, built, unpacked
from slurm_local.paths import Paths
from slurm_local.progress import Progress

SLURM_SERIES = "26.05"

DATABASE = "/usr/share/slurm-operator/database"

# An initialised database saves the longest step of a cluster's first start. It is small because nothing
# has been written to it yet; MariaDB makes the log as large as it likes when it starts. Anybody may read
# it: a pod chooses its own user, and there is nothing in it.
_EMPTY_DATABASE = f"""
chroot "$1" mariadb-install-db --no-defaults --user=mysql --datadir={DATABASE} --skip-test-db > /dev/null \\
    --skip-name-resolve --auth-root-authentication-method=socket \\
    --innodb-log-file-size=4M --innodb-undo-tablespaces=0
chroot "$1" chmod --recursive a+rX {DATABASE}
"""

# Packages made keys for this root; every container must have its own.
_TIDY = """
rm -f "$1"/etc/ssh/ssh_host_* "$1/etc/slurm/plugstack.conf" "$1/etc/munge/munge.key"
rm -rf "$1/etc/slurm/plugstack.conf.d"
chroot "$1" pam-auth-update --package --enable mkhomedir
chroot "$1" install --directory --owner=slurm --group=slurm /var/spool/slurmctld
"""

SLURM_ROOT = DebianRoot(
    name="slurm",
    minutes="2 to 3 minutes, once",
    users=(User("slurm", 401, "/var/lib/slurm"), User("munge", 102), User("mysql", 995)),
    packages=(
        *("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "sackd", "slurm-client"),
        *("slurm-wlm-jwt-plugin", "slurm-wlm-mysql-plugin", "libpam-slurm-adopt", "munge"),
        *("mariadb-server", "openssh-server", "openssh-client"),
        *("sssd-common", "sssd-ldap", "sssd-krb5", "sssd-proxy", "libnss-sss", "libpam-sss"),
        *("supervisor", "tini", "catatonit"),
        *("iproute2", "procps", "curl", "jq", "ca-certificates"),
        # These two instead of all of systemd, which Slurm's packages would take otherwise.
        *("adduser", "systemd-standalone-sysusers"),
    ),
    finish=f"set -e{_EMPTY_DATABASE}{_TIDY}",
)

OPERATOR_ROOT = DebianRoot(
    name="operator",
    minutes="about a minute, once",
    packages=("python3", "ca-certificates", "tini"),
)


def slurm_root(paths: Paths, progress: Progress) -> BuiltRoot:
    """All of Slurm in one tar, of the series that this program was tried with."""
    root = built(SLURM_ROOT, paths, progress)
    check_series(root.versions()["slurmctld"], root.directory)
    return root


def slurm_rootfs(paths: Paths, progress: Progress) -> Path:
    """The same, as a directory to run programs in."""
    slurm_root(paths, progress)
    return unpacked(SLURM_ROOT, paths, progress)


def operator_root(paths: Paths, progress: Progress) -> BuiltRoot:
    return built(OPERATOR_ROOT, paths, progress)


def check_series(version: str, directory: Path) -> None:
    """Raises when the distribution has moved on to another Slurm."""
    if not version.startswith(f"{SLURM_SERIES}."):
        raise LocalError(
            f"The distribution's suite {SUITE!r} now carries Slurm {version}; this program was tried with "
            f"{SLURM_SERIES} only. Use a newer slurm-operator, or set SLURM_SERIES in {__name__} and run the "
            f"tests. What was made is in {directory}; it stays there unused."
        )
