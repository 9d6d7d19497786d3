"""What goes into pods that no manifest names: images, and the domain of the cluster.

Whoever runs the operator may name others in its environment: one pattern for the daemons of Slurm, with
`{daemon}` where the daemon's name belongs, one image for MariaDB and one for exporters, and the domain of
Services.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import slurm_operator

PATTERN_VARIABLE: Final = "SLURM_OPERATOR_IMAGES"
MARIADB_VARIABLE: Final = "SLURM_OPERATOR_MARIADB_IMAGE"
EXPORTER_VARIABLE: Final = "SLURM_OPERATOR_EXPORTER_IMAGE"
DOMAIN_VARIABLE: Final = "SLURM_OPERATOR_CLUSTER_DOMAIN"
VARIABLES: Final = (PATTERN_VARIABLE, MARIADB_VARIABLE, EXPORTER_VARIABLE, DOMAIN_VARIABLE)

SLURM_IMAGES: Final = "ghcr.io/slinkyproject/{daemon}:26.05-ubuntu26.04"
MARIADB_IMAGE: Final = "docker.io/library/mariadb:11.8"
# No default: it is the operator's own image. No registry can have this name, so nobody can publish it.
EXPORTER_IMAGE: Final = f"unnamed.invalid/{EXPORTER_VARIABLE.lower()}:{slurm_operator.__version__}"
CLUSTER_DOMAIN: Final = "cluster.local"


def default_image(daemon: str) -> str:
    """The image of a daemon, such as `slurmctld`, or of `login`, `mariadb`, `exporter`, `rebooter`."""
    if daemon == "mariadb":
        return os.environ.get(MARIADB_VARIABLE) or MARIADB_IMAGE
    if daemon in ("exporter", "rebooter"):  # Programs of the operator's own image.
        return os.environ.get(EXPORTER_VARIABLE) or EXPORTER_IMAGE
    return (os.environ.get(PATTERN_VARIABLE) or SLURM_IMAGES).replace("{daemon}", daemon)


def cluster_domain() -> str:
    """Where names of Services end."""
    return os.environ.get(DOMAIN_VARIABLE) or CLUSTER_DOMAIN


def named_images() -> dict[str, str]:
    """What the environment says about them, by variable."""
    found = {variable: os.environ.get(variable, "") for variable in VARIABLES}
    return {variable: value for variable, value in found.items() if value}


@contextmanager
def images_named(named: Mapping[str, str]) -> Iterator[None]:
    """Within it the environment says just this about them, as that of another operator does."""
    before = named_images()
    _name(named)
    try:
        yield
    finally:
        _name(before)


def _name(named: Mapping[str, str]) -> None:
    for variable in VARIABLES:
        os.environ.pop(variable, None)
    os.environ.update(named)
