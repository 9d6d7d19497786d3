"""How jobs are kept within what they asked for: what to choose, and what that means for each daemon.

Every job in a cgroup of its own takes a privileged slurmd: unprivileged, /sys/fs/cgroup is read-only and
slurmd ends at once. Without cgroups slurmd runs with four capabilities, and jobs share the limits of the pod.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slurm_operator.api.slinky.cluster import Isolation
from slurm_operator.manifests.merge import merged
from slurm_operator.manifests.meta import Manifest
from slurm_operator.slurm.conf.lines import parse

CGROUP_CONF: Final = "cgroup.conf"

# On a Kubernetes node that cannot give a pod cgroups of its own; nothing in the API tells.
NODE_LABEL: Final = "slinky.slurm.net/isolation"

_FILES: Final[Mapping[Isolation, str]] = {
    Isolation.PROCESS: "CgroupPlugin=disabled\n",
    Isolation.CGROUP: "CgroupPlugin=autodetect\nIgnoreSystemd=yes\n"
    "ConstrainCores=yes\nConstrainDevices=yes\nConstrainRAMSpace=yes\n",
}
_LINES: Final[Mapping[Isolation, Mapping[str, str]]] = {
    Isolation.PROCESS: {"ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none"},
    Isolation.CGROUP: {"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/affinity,task/cgroup"},
}

# Without CHOWN every batch job fails; without KILL cancelled jobs of other users stay COMPLETING.
_SLURMD: Final = ("CHOWN", "KILL", "SETGID", "SETUID")
_SSHD: Final = ("AUDIT_WRITE", "DAC_OVERRIDE", "FOWNER", "SYS_CHROOT")


@dataclass(frozen=True)
class Chosen:
    """process or cgroup, and why."""

    mode: Isolation
    why: str

    @property
    def file(self) -> str:
        """cgroup.conf"""
        return _FILES[self.mode]

    def lines(self, extra_conf: str) -> list[str]:
        """Lines of slurm.conf, without those that the user sets in `extra_conf`."""
        theirs = {setting.key.lower() for setting in parse(extra_conf, "").settings}
        return [f"{key}={value}" for key, value in _LINES[self.mode].items() if key.lower() not in theirs]

    def slurmd(self, wishes: Manifest, *, has_ssh: bool) -> Manifest:
        """The user's wishes for the slurmd container, which is privileged anyway, over ours.

        Capabilities that the user adds come on top: without ours, slurmd could not start a job.
        """
        if self.mode is Isolation.CGROUP:
            return wishes
        needed = {*_SLURMD, *(_SSHD if has_ssh else ())}
        ours = {"securityContext": {"privileged": False, "capabilities": {"drop": ["ALL"]}}}
        whole: Manifest = merged(ours, wishes)
        capabilities = whole["securityContext"].get("capabilities") or {}
        capabilities["add"] = sorted({*needed, *(capabilities.get("add") or ())})
        return merged(whole, {"securityContext": {"capabilities": capabilities}})  # type: ignore[no-any-return]


def choose(wanted: Isolation, before: str, against_cgroup: str) -> Chosen:
    """What `spec.isolation` means here. A choice once made stands: another one would replace every worker."""
    if wanted is not Isolation.AUTO:
        return Chosen(wanted, "as spec.isolation says")
    if before in (Isolation.PROCESS, Isolation.CGROUP):
        return Chosen(Isolation(before), "chosen when the cluster was made; set spec.isolation to change it")
    if against_cgroup:
        return Chosen(Isolation.PROCESS, f"chosen because {against_cgroup}")
    return Chosen(Isolation.CGROUP, "chosen because nothing is known here that keeps privileged pods away")


def config_map_name(cluster: str) -> str:
    """The ConfigMap with cgroup.conf."""
    return f"{cluster}-cgroup"
