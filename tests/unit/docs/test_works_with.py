"""The table of other projects names versions that are built, and tests that exist."""

import re

import pytest

from testing.docs import ROOT
from testing.neighbours import ALL

PAGE = ROOT / "docs" / "reference" / "support.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().partition("## Works with")[2].splitlines()
    if line.startswith("|") and "`tests/" in line
]
PINNED = {one.name.lower().replace(" ", "-"): one.version for one in ALL}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_project_that_works_with_it_has_a_test_a_date_and_the_version_that_is_built(row: list[str]):
    name, version, seen, test, date = row

    assert seen
    assert all((ROOT / file).is_file() for file in re.findall(r"`(tests/[^`]+)`", test)), test
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", date)
    pinned = PINNED.get(name.lower().replace(" ", "-"))
    assert pinned is None or version == pinned


def test_the_table_is_read():
    assert ROWS
