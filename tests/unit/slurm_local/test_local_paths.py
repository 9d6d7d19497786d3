"""Where state and builds are kept."""

from pathlib import Path

import pytest

from slurm_local.paths import Paths


@pytest.mark.parametrize(
    ("environment", "home", "cache"),
    [
        pytest.param(
            {"HOME": "/home/ada"},
            "/home/ada/.local/state/slurm-operator",
            "/home/ada/.cache/slurm-operator",
            id="nothing said: the XDG defaults",
        ),
        pytest.param(
            {"HOME": "/home/ada", "XDG_STATE_HOME": "/state", "XDG_CACHE_HOME": "/cache"},
            "/state/slurm-operator",
            "/cache/slurm-operator",
            id="XDG directories",
        ),
        pytest.param(
            {"HOME": "/home/ada", "XDG_STATE_HOME": "state"},
            "/home/ada/.local/state/slurm-operator",
            "/home/ada/.cache/slurm-operator",
            id="a relative XDG directory is ignored, as the specification says",
        ),
        pytest.param(
            {"HOME": "/home/ada", "XDG_STATE_HOME": "/state", "SLURM_OPERATOR_HOME": "/own"},
            "/own",
            "/home/ada/.cache/slurm-operator",
            id="our own variable wins and is taken as it is",
        ),
    ],
)
def test_the_environment_chooses_the_directories(environment: dict[str, str], home: str, cache: str) -> None:
    assert Paths.of(environment) == Paths(Path(home), Path(cache))
