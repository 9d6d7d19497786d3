"""No command stands in the documentation that no test types."""

import re

import pytest

from testing.docs import PAGES, ROOT, blocks, commands, is_shown
from testing.readers import (
    ELSEWHERE,
    GUIDE_FROM_SLINKY,
    GUIDE_SOPERATOR_CHARTS,
    ON_A_CLUSTER,
    ON_AN_API_SERVER,
    PAGES_ELSEWHERE,
    TUTORIAL,
    left_out,
    pages_with_commands,
)

TOOLS = re.compile(r"^(\$ |(kubectl|helm|make|slurm-operator|\.venv/bin/\S+|curl|docker) )", re.MULTILINE)


def test_every_page_with_commands_is_typed_by_a_test():
    by_themselves = {TUTORIAL, GUIDE_FROM_SLINKY, GUIDE_SOPERATOR_CHARTS}
    assert pages_with_commands() == {*ON_A_CLUSTER, *ON_AN_API_SERVER, *by_themselves}


def test_what_is_not_typed_still_stands_somewhere():
    there = {command.text for page in PAGES for command in commands(page) if left_out(command)}

    assert ELSEWHERE.keys() <= there
    assert all(commands(ROOT / page) for page in PAGES_ELSEWHERE)


def test_commands_stand_in_blocks_that_say_so():
    """Other blocks are not typed, so nothing in them may look as if it were."""
    unmarked = [block for language in ("", "text", "bash", "shell") for block in blocks(language)]

    assert [str(block) for block in unmarked if TOOLS.search(block.text)] == []


def test_a_command_over_several_lines_is_one():
    [command] = [each for each in commands(ROOT / "docs/guides/installation.md") if "xargs" in each.text]

    assert command.text.startswith("kubectl get clusters")


def test_what_a_page_shows_below_a_block_is_what_its_last_command_prints():
    shown = {command.text.split()[0]: command.shows for command in commands(ROOT / "docs/guides/keys.md")}
    found = [command for command in commands(ROOT / "docs/guides/accounting.md") if command.shows]

    assert not any(shown.values())
    assert [(each.text.split()[6], each.shows) for each in found] == [("sacct", "demo physics COMPLETED\n")]


@pytest.mark.parametrize(
    ("shows", "printed", "is_it"),
    [
        ("a b\n", "noise\n  a   b \n", True),
        ("a\nb\n", "b\na\n", False),
        ("a...c\n", "abc\n", True),
        ("a...c\n", "abcd\n", False),
        ("a\na\n", "a\n", False),
        ("", "anything\n", True),
        ("a.c\n", "abc\n", False),
    ],
)
def test_every_line_that_is_shown_has_to_be_printed_in_that_order(shows, printed, is_it):
    assert is_shown(shows, printed) is is_it
