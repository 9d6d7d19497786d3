"""What programs of a cluster leave in their logs."""

from pathlib import Path


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log, without reading all of it."""
    if not log.exists():
        return "(it wrote nothing)"
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 16_384))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-count:]) or "(it wrote nothing)"
