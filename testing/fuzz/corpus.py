"""What was worth keeping: inputs that took a way which none before had taken. A file for each target."""

import base64
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from testing.fuzz.targets import SEEDS

FOLDER: Final = Path(__file__).parent / "corpus"

# The shortest ones. A corpus is a start for the next run, and a test of every one; more adds little to either.
MOST = 400


def kept(target: str, folder: Path = FOLDER) -> list[bytes]:
    """With what it began with."""
    file = folder / f"{target}.txt"
    lines = file.read_text().split() if file.exists() else []
    return [*SEEDS[target], *(base64.b64decode(line) for line in lines)]


def keep(target: str, found: Iterable[bytes], folder: Path = FOLDER) -> None:
    folder.mkdir(exist_ok=True)
    shortest = sorted({*found} - {*SEEDS[target]}, key=lambda one: (len(one), one))[:MOST]
    lines = (base64.b64encode(one).decode() for one in sorted(shortest) if one)
    (folder / f"{target}.txt").write_text("".join(f"{line}\n" for line in lines))


def unpack(target: str, into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for one in kept(target):
        (into / sha256(one).hexdigest()[:20]).write_bytes(one)
