"""Pods that an earlier version made. They keep what they have: an upgrade of the operator replaces none."""

from collections.abc import Iterable

from slurm_operator.api.shared import belonging, names
from slurm_operator.insight.clusters import DAEMONS
from slurm_operator.manifests.objects import Pod

_DAEMONS = {daemon for daemons in DAEMONS.values() for daemon in daemons}


def less_confined(pods: Iterable[Pod]) -> list[Pod]:
    """Pods of daemons that were made before their containers were confined as they are now, by name."""
    found = (
        pod
        for pod in pods
        if belonging.daemon_of(pod.metadata.labels) in _DAEMONS
        and pod.metadata.annotations.get(names.POD_SECURITY) != names.POD_SECURITY_NOW
    )
    return sorted(found, key=lambda pod: pod.metadata.name)
