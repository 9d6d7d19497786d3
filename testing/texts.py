"""Texts as people should see them, in files that a review can read. SLURM_OPERATOR_GOLDEN=write writes them again."""

import os
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "tests" / "unit" / "insight" / "golden"


def assert_text(name: str, text: str) -> None:
    """This is the text in `golden/NAME`, byte for byte."""
    path = GOLDEN / name
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {path}"
    )
