"""After everything else: operator and webhook used all the rights that they have."""

from pathlib import Path

import pytest

from testing import rights


@pytest.mark.parametrize("account", rights.ACCOUNTS, ids=lambda account: account.name)
def test_every_right_was_used_by_something(account: rights.Account, pytestconfig: pytest.Config) -> None:
    """Rights that nothing needs are rights that somebody else may use. See also that none was missing, per server."""
    noted = sorted(Path(pytestconfig.getoption("--rights")).glob("*.json"))
    assert noted, "run the tests with an API server first: make test"

    used = set().union(*(rights.noted(file, account) for file in noted))

    assert used - rights.granted(account) == set()
    unused = rights.granted(account) - used
    assert sorted(use for use in unused if not rights.is_rare(account, use)) == []
