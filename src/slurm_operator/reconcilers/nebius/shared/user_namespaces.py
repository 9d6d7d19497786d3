"""User namespaces of pods on a shared root, which not every file system can be mounted in."""

from collections.abc import Iterable
from typing import Final

from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ContainerStatus, Pod

# Where runc and crun say why a container does not start, in the versions that can tell.
_REFUSAL: Final = "support idmap mounts"


def can_be_mounted(source: Manifest) -> bool:
    """Whether a volume may be mounted in a namespace, as far as its source tells. NFS cannot (Linux 6.18)."""
    return "nfs" not in source


def was_refused(pods: Iterable[Pod]) -> bool:
    """Whether a kubelet could not start one of these because of the file system of a volume."""
    return any(_REFUSAL in text for pod in pods for text in _texts(pod))


def _texts(pod: Pod) -> list[str]:
    found = [*pod.status.init_container_statuses, *pod.status.container_statuses]
    return [text for status in found for text in _words_of(status)]


def _words_of(status: ContainerStatus) -> list[str]:
    states = (status.state.waiting, status.state.terminated, status.last_state.terminated)
    return [state.message for state in states if state is not None]
