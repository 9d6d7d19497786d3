"""Lists in sentences: the first few, and how many there are besides."""

from collections.abc import Sequence


def first_few(items: Sequence[object], most: int = 5, *, separator: str = ", ") -> str:
    """`a, b and 3 more`; between longer texts `a; b; and 3 more`."""
    shown = separator.join(map(str, items[:most]))
    more = len(items) - most
    if more <= 0:
        return shown
    return f"{shown} and {more} more" if separator == ", " else f"{shown}{separator}and {more} more"
