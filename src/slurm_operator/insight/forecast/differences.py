"""Two objects, field by field."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slurm_operator import wire


class Difference(wire.Record):
    """One field, before and after; empty is not there. Of a long text only the lines that differ."""

    field: str
    before: str = ""
    after: str = ""


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from differences(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif _are_named(before) and _are_named(after):
        yield from _named_differences(before, after, path)
    elif isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield _lines(before, after, path)
    else:
        yield Difference(field=path, before=_text(before), after=_text(after))


def _are_named(items: Any) -> bool:
    return (
        isinstance(items, list) and bool(items) and all(isinstance(i, Mapping) and "name" in i for i in items)
    )


def _named_differences(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[Difference]:
    old, new = ({item["name"]: item for item in items} for items in (before, after))
    for name in sorted({*old, *new}):
        yield from differences(old.get(name), new.get(name), f"{path}[{name}]")


def _lines(before: str, after: str, path: str) -> Difference:
    old, new = before.splitlines(), after.splitlines()
    found = [line for line in difflib.ndiff(old, new) if line[:2] in ("- ", "+ ")]
    return Difference(
        field=path,
        before="\n".join(line[2:] for line in found if line.startswith("-")),
        after="\n".join(line[2:] for line in found if line.startswith("+")),
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else wire.encode(value).decode()
