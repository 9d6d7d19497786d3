"""Configuration of sshd and sssd in pods."""

import re
from collections.abc import Iterable, Sequence

from slurm_operator.api.shared import names

# The kubelet keeps this directory up to date in running pods.
AUTHORIZED_KEYS_DIRECTORY = "/etc/ssh/authorized_keys.d"

# Users of the image, as its passwd and shadow files have them.
LOCAL_USERS_SSSD_CONF = """\
[sssd]
config_file_version = 2
services = nss,pam
domains = DEFAULT

[nss]
filter_groups = root,slurm
filter_users = root,slurm

[pam]

[domain/DEFAULT]
auth_provider = proxy
id_provider = proxy
proxy_lib_name = files
proxy_pam_target = sssd-shadowutils
"""


def sshd_config(
    extra: str, *, port: int = names.SSH_PORT, host_keys: Sequence[str] = (), forwards_x11: bool = False
) -> str:
    """sshd_config with the user's lines. sshd takes the first value of a keyword, so ours stand."""
    return "\n".join(
        [
            "Include /etc/ssh/sshd_config.d/*.conf",
            *([f"Port {port}"] if port != names.SSH_PORT else []),
            # Named one by one: a key that only one pod has made for itself must not be offered to anybody.
            *(f"HostKey /etc/ssh/{name}" for name in host_keys),
            "UsePAM yes",
            *(["X11Forwarding yes"] if forwards_x11 else []),
            "Subsystem sftp internal-sftp",
            *extra.splitlines(),
            "",
        ]
    )


def is_set_for_all(keyword: str, lines: str) -> bool:
    """Whether these lines of sshd_config say something about it that is not just for some (`Match`)."""
    for line in lines.splitlines():
        first = re.split(r"[\s=]", line.strip(), maxsplit=1)[0].lower()
        if first in ("match", keyword.lower()):
            return first != "match"
    return False


def keys_of_root() -> str:
    """Lines that let root in by keys from a directory that the kubelet keeps up to date; to be the last.

    sshd itself would refuse files there: everybody may write to the directory of a mounted volume, as far as
    its mode tells. So it asks for their content.
    """
    return (
        "Match User root\n"
        f"    AuthorizedKeysCommand /usr/bin/cat {AUTHORIZED_KEYS_DIRECTORY}/%u\n"
        "    AuthorizedKeysCommandUser root\n"
    )


def authorized_keys(keys: str) -> str:
    return "\n".join(
        ["# Written by slurm-operator; edit spec.rootSshAuthorizedKeys instead.", *keys.splitlines(), ""]
    )


def host_key_files(entries: Iterable[str]) -> list[str]:
    """Names of the private host keys among the entries of a Secret, always in the same order."""
    present = set(entries)
    wanted = (f"ssh_host_{kind}_key" for kind in names.SSH_HOST_KEY_TYPES)
    return [name for name in wanted if name in present]
