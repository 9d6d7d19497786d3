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
        ("mariadb", {"SLURM_OPERATOR_MARIADB_IMAGE": "registry.example.org/db:1"}, "registry.example.org/db:1"),
    ],
)  # fmt: skip
def test_the_environment_of_the_operator_may_name_other_images(monkeypatch, daemon, environment, image):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert default_image(daemon) == image
