"""Label selectors as we write them: `a=b`, `a in (b,c)`, `a`, joined by commas that mean "and"."""

import re
from collections.abc import Mapping
from functools import cache

_TERM = re.compile(r"\s*([^\s,=!()]+)\s*(?:=\s*([^\s,()]*)|in\s*\(([^)]*)\))?\s*(?:,|$)")


def matches(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether the API server would list an object with these labels; ValueError for other selectors."""
    return all(
        key in labels and (wanted is None or labels[key] in wanted) for key, wanted in _terms(selector)
    )


@cache
def _terms(selector: str) -> list[tuple[str, list[str] | None]]:
    """Keys, and the values that each may have; None is any."""
    found: list[tuple[str, list[str] | None]] = []
    position = 0
    while position < len(selector):
        term = _TERM.match(selector, position)
        if term is None:
            raise ValueError(f"not a selector of ours: {selector!r}")
        key, value, values = term.groups()
        found.append(
            (key, None if value is None and values is None else [value] if values is None else _split(values))
        )
        position = term.end()
    return found


def _split(values: str) -> list[str]:
    return [value.strip() for value in values.split(",")]
