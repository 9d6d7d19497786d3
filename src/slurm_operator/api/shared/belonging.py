"""Which daemon and which object of ours a thing belongs to, by its labels.

app.kubernetes.io/name and instance say so, unless the object's own spec has put other words there;
then labels of ours stand beside them.
"""

from collections.abc import Mapping

from slurm_operator.api.shared import names


def daemon_of(labels: Mapping[str, str]) -> str:
    """What an object with these labels was made for: `slurmd`, `login` and so on."""
    return labels.get(names.LABEL_PART) or labels.get(names.APP_NAME, "")


def owner_of(labels: Mapping[str, str]) -> str:
    """Which object of ours it was made for, by name."""
    return labels.get(names.LABEL_PART_NAME) or labels.get(names.APP_INSTANCE, "")


def part(labels: Mapping[str, str]) -> tuple[str, str]:
    """Both."""
    return daemon_of(labels), owner_of(labels)
