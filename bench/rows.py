"""One measured figure."""

from typing import NamedTuple


class Row(NamedTuple):
    """A figure, and how it compares with another one that was measured in the same run."""

    name: str
    value: float
    unit: str
    ratio_to: str = ""
    ratio: float | None = None
