"""What the tag of an image says about its Slurm, and what follows from it."""

import pytest

from slurm_operator.api.schema.problems import Severity
from slurm_operator.api.shared import slurm_series
from slurm_operator.manifests.builders.parts import slurm_probe


@pytest.mark.parametrize(
    ("image", "series"),
    [
        ("ghcr.io/slinkyproject/slurmctld:24.11-ubuntu24.04", (24, 11)),
        ("docker.io/local/slurmctld:26.05", (26, 5)),
        ("cr.example.org:5000/slurm/slurmd:v25.11.2", (25, 11)),
        ("slurmd:24.11.5@sha256:0123", (24, 11)),
        pytest.param("slurmd:latest", None, id="a word"),
        pytest.param("cr.example.org:24.11/slurmd", None, id="a port is no tag"),
        pytest.param("slurmd:24.04", None, id="an Ubuntu is no series"),
        pytest.param("slurmd:2024.11", None, id="a year is no series"),
        pytest.param("slurmd@sha256:24.11", None, id="a digest is no tag"),
        pytest.param("slurmd", None, id="no tag"),
    ],
)
def test_the_series_is_read_from_the_tag(image, series):
    assert slurm_series.series(image) == series


@pytest.mark.parametrize(
    ("image", "probe"),
    [
        ("slurmd:24.11", "tcpSocket"),
        ("slurmd:25.11", "httpGet"),
        ("slurmd:26.05", "httpGet"),
        ("slurmd:main", "httpGet"),
    ],
)
def test_a_daemon_without_http_is_probed_by_a_connection(image, probe):
    assert probe in slurm_probe(image, "/readyz", "slurmd", period_seconds=1, failures=3)


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("s:26.05", ""),
        ("s:main", ""),
        ("s:24.11", "Slurm 24.11 has no metrics"),
        ("s:23.02", "Slurm 23.02 is too old"),
    ],
)
def test_what_an_older_slurm_lacks_is_a_warning(image, says):
    found = list(slurm_series.problems(image))
    assert "".join(problem.message for problem in found).startswith(says)
    assert bool(found) is bool(says)
    assert all(problem.severity is Severity.WARNING for problem in found)
