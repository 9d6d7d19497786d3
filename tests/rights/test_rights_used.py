"""After everything else: the operator used all the rights that it has."""

from pathlib import Path

import pytest

from support import rights


def test_every_right_of_the_operator_was_used_by_something(pytestconfig: pytest.Config) -> None:
    """Rights that nothing needs are rights that somebody else may use. See also that none was missing, per server."""
    noted = sorted(Path(pytestconfig.getoption("--rights")).glob("*.json"))
    assert noted, "run the tests with an API server first: make test"

    used = set().union(*map(rights.noted, noted))

    assert used - rights.granted() == set()
    assert sorted(use for use in rights.granted() - used if not rights.is_rare(use)) == []
