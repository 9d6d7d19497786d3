"""Fields that are accepted and count for nothing: where they are, why, and which of them a manifest uses.

A test changes every field of the models. One that changes nothing has to stand in a table like this, or in an
admission warning.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from slurm_operator.api.schema import codec
from slurm_operator.api.schema.model import REQUIRED, fields_of
from slurm_operator.reconcilers.nebius.shared.families import Family


@dataclass(frozen=True)
class Ignored:
    """A field below `spec`, or everything below one. `family`: only with these images."""

    path: str
    why: str
    family: Family | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def each(parent: str, fields: Iterable[str], why: str, family: Family | None = None) -> tuple[Ignored, ...]:
    return tuple(Ignored(f"{parent}.{field}", why, family) for field in fields)


def used(spec: Any, table: Iterable[Ignored], family: Family) -> Iterator[str]:
    """A sentence for each field of the table to which this spec gives a value of its own."""
    for one in table:
        if one.family in (None, family) and _is_given(spec, one.path.split(".")):
            yield str(one)


def _is_given(model: Any, path: list[str]) -> bool:
    """Whether the field at the path has another value than its default."""
    cls: type = type(model)
    [field] = [one for one in fields_of(cls) if one.name == path[0]]
    value = getattr(model, field.attribute)
    if value is None:
        return False
    if path[1:]:
        return _is_given(value, path[1:])
    given = codec.plain(value)
    if field.prop.default is REQUIRED:
        return bool(given)
    return bool(given != codec.plain(field.prop.default))
