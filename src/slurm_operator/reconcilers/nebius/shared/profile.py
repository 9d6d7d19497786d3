"""The AppArmor profile of login pods and workers, which the Security Profiles Operator loads on each node."""

from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests.meta import Child, Manifest

_LOCALHOST: Final = "localhost/"
_LOADED: Final = "Installed"

# Files of the GPU driver as programs in the root see them: where they are mounted, they are the node's.
_DRIVER_FILES: Final = (
    "/usr/lib/{x86_64,aarch64}-linux-gnu/libcuda.so*",
    "/usr/lib/{x86_64,aarch64}-linux-gnu/libcudadebugger.so*",
    "/usr/lib/{x86_64,aarch64}-linux-gnu/libnvcuvid.so*",
    "/usr/lib/{x86_64,aarch64}-linux-gnu/libnvidia-*.so*",
    "/usr/bin/nvidia-{cuda-mps-control,cuda-mps-server,debugdump,persistenced,smi}",
    "/usr/bin/nv-fabricmanager",
    "/{,usr/}lib/firmware/nvidia/**",
)

# Whatever a program may do without a profile.
_ALLOWED: Final = (
    "capability",
    "dbus",
    "file",
    "mount",
    "network",
    "pivot_root",
    "ptrace",
    "remount",
    "signal",
    "umount",
    "unix",
)


def policy(name: str) -> str:
    """Everything is allowed, but to replace files of the GPU driver."""
    rules = [*(f"{word}," for word in _ALLOWED), *(f"deny {path} wl," for path in _DRIVER_FILES)]
    lines = [
        f"profile {name} flags=(attach_disconnected,mediate_deleted) {{",
        *(f"  {one}" for one in rules),
        "}",
    ]
    return "".join(f"{line}\n" for line in lines)


def may_have(part: LoginSet | WorkerPart, name: str) -> bool:
    """Whether one of its pods may still run with the profile: it is to, or was made when it was."""
    container = part.spec.login if isinstance(part, LoginSet) else part.spec.slurmd
    status, is_read = part.status, part.status.observed_generation >= part.metadata.generation
    return (
        _has(container.get("securityContext"), name)
        or not is_read
        or status.updated_replicas < status.replicas
    )


def _has(security: Manifest | None, name: str) -> bool:
    return bool((security or {}).get("appArmorProfile", {}).get("localhostProfile") == name)


def is_loaded(profile: Child | None) -> bool:
    """Whether every Kubernetes node has it. A container with a profile that its node lacks does not start."""
    return profile is not None and (profile.body.get("status") or {}).get("status") == _LOADED


def app_armor(cluster: SlurmCluster, wished: str, security: Manifest | None, *, is_loaded: bool) -> str:
    """The profile of a container, in the words of this API.

    `security` is the securityContext that its part has. What pods have they keep, also while nobody can see
    whether it is loaded, and when a Kubernetes node joins: another answer would replace all of them.
    """
    assert cluster.spec is not None
    name = names.profile(cluster.metadata.name, cluster.metadata.namespace)
    is_used = cluster.spec.use_default_app_armor_profile and (is_loaded or _has(security, name))
    return f"{_LOCALHOST}{name}" if is_used else wished
