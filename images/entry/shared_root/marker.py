"""The file that says that a root is complete, and what it was made from."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from . import places
from .layout import MARKER


@dataclass(frozen=True)
class Marker:
    """What a complete root says of itself. Fields are empty where another program populated it."""

    source: str = ""
    identity: str = ""
    request: str = ""
    populated: str = ""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_marker(root: int) -> Marker | None:
    """What the root's marker says; None when there is none. Raises Failure where it is not a file."""
    content = places.read(root, MARKER)
    return None if content is None else parsed(content)


def parsed(content: bytes) -> Marker:
    """The marker of this program, or of another: that one has a time in it, or nothing."""
    try:
        fields = json.loads(content)
    except ValueError:
        return Marker()
    if not isinstance(fields, dict):
        return Marker()
    return Marker(**{name: str(fields[name]) for name in Marker.__dataclass_fields__ if name in fields})


def write_marker(root: int, marker: Marker) -> None:
    places.write(root, MARKER, f"{json.dumps(asdict(marker))}\n".encode())
