"""STYLE.md shows code that is really there."""

import pytest

from testing.docs import ROOT, Block, blocks

EXCERPTS = list(blocks("python", (ROOT / "STYLE.md",)))


def test_there_are_excerpts():
    assert len(EXCERPTS) == 3


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=str)
def test_an_excerpt_is_a_part_of_the_file_it_names(excerpt: Block):
    first, _, code = excerpt.text.partition("\n")

    assert code in (ROOT / first.removeprefix("# ")).read_text()
