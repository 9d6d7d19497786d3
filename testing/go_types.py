"""What a typed Go client makes of a pod that it reads and writes back.

`go_pod_types.json` has every struct in PodSpec and Container of k8s.io/api 0.36 (core/v1): by field its type, `*` for
a pointer, `!` for a field without `omitempty`, and after the colon what is in it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

STRUCTS: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("go_pod_types.json").read_text())

ZEROS: dict[str, Any] = {
    "bool": False, "number": 0, "string": "", "intorstring": 0, "quantity": "0", "list": [], "map": {}, "struct": {},
}  # fmt: skip


class Field(NamedTuple):
    """A field of a struct, and one way to get there: the names and kinds of the fields above it."""

    above: tuple[tuple[str, str], ...]
    name: str
    kind: str
    is_pointer: bool
    is_always_written: bool

    def __str__(self) -> str:
        return ".".join([*(name for name, _ in self.above), self.name])

    @property
    def parent(self) -> str:
        return self.above[-1][0] if self.above else ""

    @property
    def zero(self) -> Any:
        return ZEROS[self.kind]

    def within(self, **fields: Any) -> dict[str, Any]:
        """A whole spec in which the struct of this field has these; nothing above it is empty."""
        found: dict[str, Any] = {"unlike": "others", **fields}
        for name, kind in reversed(self.above):
            found = {"unlike": "others", name: [found] if kind == "list" else found}
        return found


def fields(struct: str) -> list[Field]:
    """Every field in a struct and in what it is made of, each struct once."""
    return list(_fields(struct, (), {"time", "bytes", "?FieldsV1"}, set()))


def _fields(
    struct: str, above: tuple[tuple[str, str], ...], untold: set[str], told: set[str]
) -> Iterator[Field]:
    told.add(struct)
    for name, said in STRUCTS[struct].items():
        kind, always, of = _read(said)
        if kind.lstrip("*") in untold:
            continue
        yield Field(above, name, kind.lstrip("*"), kind.startswith("*"), always)
        if of in STRUCTS and of not in told:
            yield from _fields(of, (*above, (name, kind.lstrip("*"))), untold, told)


def _read(said: str) -> tuple[str, bool, str]:
    kind, _, of = said.partition(":")
    return kind.rstrip("!"), kind.endswith("!"), of


def typed(value: dict[str, Any], struct: str) -> dict[str, Any]:
    """What the client writes back. Only fields that the struct has."""
    found = {}
    for name, said in STRUCTS[struct].items():
        kind, always, of = _read(said)
        given = value.get(name)
        if given is None and (kind.startswith("*") or kind in ("list", "map", "time", "bytes", "?FieldsV1")):
            written = None
        elif of in STRUCTS:
            written = _inside(given, kind, of)
        else:
            written = ZEROS[kind] if given is None else given
        is_dropped = written is None or (not kind.startswith("*") and written in (False, 0, "", [], {}))
        if always or kind == "struct" or kind == "quantity" or not is_dropped:
            found[name] = written
    return found


def _inside(given: Any, kind: str, of: str) -> Any:
    if kind == "list":
        return [typed(item, of) for item in given]
    if kind == "map":
        return {key: typed(item, of) for key, item in given.items()}
    return typed(given or {}, of)
