"""Label selectors as we write them: `a=b`, `a in (b,c)`, `a`, joined by commas that mean "and"."""

import re
from collections.abc import Mapping

_TERM = re.compile(r"\s*([^\s,=!()]+)\s*(?:=\s*([^\s,()]*)|in\s*\(([^)]*)\))?\s*(?:,|$)")


def matches(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether the API server would list an object with these labels; ValueError for other selectors."""
    position = 0
    while position < len(selector):
        term = _TERM.match(selector, position)
        if term is None:
            raise ValueError(f"not a selector of ours: {selector!r}")
        key, value, values = term.groups()
        wanted = None if value is None and values is None else [value] if values is None else _split(values)
        if key not in labels or (wanted is not None and labels[key] not in wanted):
            return False
        position = term.end()
    return True


def _split(values: str) -> list[str]:
    return [value.strip() for value in values.split(",")]
