"""What a NodeSet asks for and does not get. It is accepted, and said here; never dropped silently."""

from collections.abc import Iterator
from typing import Final

from slurm_operator.api.nebius.volumes import given
from slurm_operator.api.shared import names as shared_names
from slurm_operator.reconcilers.nebius.ignored import Ignored, each, used
from slurm_operator.reconcilers.nebius.nodeset import desired
from slurm_operator.reconcilers.nebius.nodeset.observe import Seen
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.root import jail_source

_SSSD: Final = "sssd of the slurmd image runs, inside the slurmd container"
# Everything about its container, but that there is one: that switches sssd on.
_SSSD_FIELDS: Final = ("resources", "livenessProbe", "readinessProbe", "security")

# Everything that no part, file or object follows from, with every image or with those of one family.
IGNORED: Final = (
    Ignored("ephemeralTopologyWaitTimeout", "workers do not wait for a place in the network"),
    Ignored("munge.security.limitsConfig", "it gets the limits of the container runtime"),
    Ignored("sssd.security.limitsConfig", "it gets the limits of the container runtime", Family.SOPERATOR),
    *each("sssd", _SSSD_FIELDS, _SSSD, Family.OURS),
    Ignored("sssdDebugLevel", f"{_SSSD}; write it into sssd.conf", Family.OURS),
)

# What counts only where Slurm powers workers up and down.
_OF_EPHEMERAL: Final = (
    Ignored("initialNumberEphemeralNodes", "all replicas run all the time, as ephemeralNodes is false"),
)


def unsupported(seen: Seen) -> Iterator[str]:
    """What the spec asks for and workers do not get."""
    spec, is_ours = seen.spec, seen.family is Family.OURS
    if seen.family is not seen.family_of_image:
        yield (
            f"slurmd.image: workers are made for images of {seen.family}, as before; that changes when the "
            "shared root is overwritten"
        )
    if seen.cluster is not None and seen.cluster.spec is not None:
        source = jail_source(seen.of)
        if source is not None and given(spec.slurmd.volumes.jail) != source:
            yield "slurmd.volumes.jail: it is another volume than that of the SlurmCluster, and not populated"
    if spec.docker.enabled:
        yield "docker.enabled: jobs cannot use Docker"
    if spec.ephemeral_nodes and not seen.has_power_states:
        yield "ephemeralNodes: no worker is started or stopped, because NodeSetPowerState is not served here"
    if not spec.ephemeral_nodes:
        yield from used(spec, _OF_EPHEMERAL, seen.family)
    if spec.slurmd.port != shared_names.SLURMD_PORT:
        yield f"slurmd.port: slurmd listens on {shared_names.SLURMD_PORT}"
    if spec.slurmd.liveness_probe:
        yield "slurmd.livenessProbe: left out, because a kubelet that kills slurmd ends its jobs"
    yield from used(spec, IGNORED, seen.family)
    if is_ours and spec.sssd is not None and spec.sssd.image.reference != spec.slurmd.image.reference:
        yield f"sssd.image: {_SSSD}"
    if not spec.node_config.auto_resume and is_ours:
        yield "nodeConfig.autoResume: Slurm as released has no such parameter"
    if not spec.enable_host_user_namespace and seen.cluster is not None and desired.host_users(seen) is None:
        why = (
            "the file system of the shared root cannot be mounted in one of their own"
            if seen.has_user_namespaces
            else "not every Kubernetes node says that it can give pods one of their own"
        )
        yield f"enableHostUserNamespace: workers use the host's user namespace, because {why}"
