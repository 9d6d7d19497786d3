"""Clear words before anything is started."""

from pathlib import Path

import pytest

from slurm_local import preflight
from slurm_local.errors import LocalError
from slurm_local.paths import Paths

FINE = Paths(Path("/opt/state"), Path("/opt/cache"))


@pytest.mark.parametrize(
    ("name", "paths", "complaint"),
    [
        pytest.param("Big", FINE, "'Big' is no name for a cluster", id="capitals"),
        pytest.param("../x", FINE, "is no name for a cluster", id="a path"),
        pytest.param("a" * 21, FINE, "is no name for a cluster", id="too long"),
        pytest.param(
            "demo", Paths(Path("/run/x"), FINE.cache), "Set SLURM_OPERATOR_HOME to another", id="hidden home"
        ),
        pytest.param(
            "demo",
            Paths(FINE.home, Path("/var/lib/x")),
            "Set SLURM_OPERATOR_CACHE to another",
            id="hidden cache",
        ),
    ],
)
def test_a_place_or_name_that_cannot_work_is_named(name: str, paths: Paths, complaint: str) -> None:
    with pytest.raises(LocalError) as trouble:
        preflight.check(name, paths, builds_needed=False)

    assert complaint in str(trouble.value)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(LocalError) as trouble:
        preflight.check("Big", Paths(Path("/run/x"), Path("/var/log/x")), builds_needed=False)

    assert str(trouble.value).count("\n  - ") >= 3
