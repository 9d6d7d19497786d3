"""Whose images a cluster uses: ours, or those of Soperator.

An image cannot be asked. Ours have the names that the operator would choose itself, whatever their tag; an
annotation says it where they were copied to other names. Everything else is taken for Soperator's.

Ours start slurmd with -Z, check the shared root before slurmd starts, and have a plugin that enters it.
Soperator's bind everything into the root when the container starts, and need lines for their nodes.

Which of the two it is, is chosen once for a shared root and kept until that is overwritten: jobs that run,
records of nodes and the root itself are of one kind, and a renamed image does not change them.
"""

from collections.abc import Mapping
from enum import StrEnum

from slurm_operator.api.nebius import names
from slurm_operator.api.shared.images import default_image
from slurm_operator.manifests.objects import Secret, Unread

_OURS = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login", "populate-jail")


class Family(StrEnum):
    OURS = "slurm-operator"
    SOPERATOR = "soperator"


def family(image: str, annotations: Mapping[str, str]) -> Family:
    """Whose image this is; `annotations` are those of the SlurmCluster."""
    said = annotations.get(names.IMAGES, "")
    if said in tuple(Family):
        return Family(said)
    ours = {repository(default_image(daemon)) for daemon in _OURS}
    return Family.OURS if repository(image) in ours else Family.SOPERATOR


def kept_family(keys: Secret | Unread | None) -> Family | None:
    """Whose images the shared root is used with, as noted beside the cluster's keys, which stay with it."""
    said = keys.metadata.annotations.get(names.IMAGES, "") if isinstance(keys, Secret) else ""
    return Family(said) if said in tuple(Family) else None


def repository(image: str) -> str:
    """An image reference without its tag and digest."""
    name, _, _ = image.partition("@")
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def tag(image: str) -> str:
    """The tag of an image reference; empty when it has none, or a digest."""
    _, _, last = image.rpartition("/")
    return "" if "@" in image else last.partition(":")[2]
