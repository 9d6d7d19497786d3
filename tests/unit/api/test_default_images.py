"""Which image runs where nobody names one."""

import pytest

from slurm_operator.api.shared.images import default_image


@pytest.mark.parametrize(
    ("daemon", "environment", "image"),
    [
        ("slurmd", {}, "ghcr.io/slinkyproject/slurmd:26.05-ubuntu26.04"),
        ("slurmd", {"SLURM_OPERATOR_IMAGES": "registry.example.org/{daemon}:1"}, "registry.example.org/slurmd:1"),
        ("login", {"SLURM_OPERATOR_IMAGES": "registry.example.org/all:1"}, "registry.example.org/all:1"),
        ("login", {"SLURM_OPERATOR_IMAGES": ""}, "ghcr.io/slinkyproject/login:26.05-ubuntu26.04"),
        ("mariadb", {"SLURM_OPERATOR_IMAGES": "registry.example.org/{daemon}:1"}, "docker.io/library/mariadb:11.8"),
        ("exporter", {"SLURM_OPERATOR_EXPORTER_IMAGE": "registry.example.org/op:1"}, "registry.example.org/op:1"),
        ("mariadb", {"SLURM_OPERATOR_MARIADB_IMAGE": "registry.example.org/db:1"}, "registry.example.org/db:1"),
    ],
)  # fmt: skip
def test_the_environment_of_the_operator_may_name_other_images(monkeypatch, daemon, environment, image):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert default_image(daemon) == image


def test_nobody_can_publish_the_image_of_an_exporter_that_nobody_named():
    """`.invalid` is a domain that no registry can have."""
    assert default_image("exporter").partition("/")[0] == "unnamed.invalid"
