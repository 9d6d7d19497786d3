"""The code in the documentation, so that tests can run what readers copy."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(language: str, pages: tuple[Path, ...] = PAGES) -> Iterator[Block]:
    """Every fenced block of that language, in reading order."""
    for page in pages:
        text = page.read_text()
        for found in FENCE.finditer(text):
            if found[1] == language:
                yield Block(page, text.count("\n", 0, found.start()) + 1, found[2])
