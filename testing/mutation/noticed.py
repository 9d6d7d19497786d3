"""Who noticed which mutant, kept from run to run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from slurm_operator import wire
from testing.mutation.edits import ROOT

RESULTS: Final = ROOT / "testing/mutation/results.json"

STORY, TEST, NOBODY = "story", "test", "nobody"


class Noticed(wire.Record):
    """By whom, and how: the name of a story and the promise that it breaks, or a test."""

    by: str
    what: str
    why: str = ""


def read(path: Path = RESULTS) -> dict[str, Noticed]:
    return wire.decode(path.read_bytes(), dict[str, Noticed]) if path.exists() else {}


def write(found: Mapping[str, Noticed], path: Path = RESULTS) -> None:
    lines = (f'"{name}": {wire.encode(found[name]).decode()}' for name in sorted(found))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
