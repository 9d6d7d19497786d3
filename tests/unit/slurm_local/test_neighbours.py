"""What is built of other projects for tests: pinned by the versions that the documentation names."""

import re

import pytest

from slurm_local.build import versions
from testing.neighbours import ALL, MODULES, OF_TESTS, Neighbour


@pytest.mark.parametrize("beside", ALL, ids=[one.name for one in ALL])
def test_the_module_files_ask_for_the_pinned_version_and_for_no_newer_go_than_we_accept(beside: Neighbour):
    text = (MODULES / beside.name / "go.mod").read_text()
    wanted = re.search(r"^go (\d+)\.(\d+)\.(\d+)$", text, re.MULTILINE)

    assert re.search(rf"\s{re.escape(beside.path)} v{re.escape(beside.version)}\s", text)
    assert wanted is not None
    assert tuple(map(int, wanted.groups())) <= versions.GO_OLDEST


def test_each_of_them_has_an_end_to_end_test():
    assert {one for beside in OF_TESTS.values() for one in beside} == set(ALL)
