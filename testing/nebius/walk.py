"""Every field of a model of slurm.nebius.ai, each with a manifest in which only that field is another one."""

import copy
from collections.abc import Iterator
from datetime import timedelta
from enum import Enum
from itertools import pairwise
from typing import Any, get_args, get_origin

from slurm_operator.api.schema.model import Field, fields_of, is_model, item_type
from slurm_operator.api.schema.openapi import Quantity

Path = tuple[str | int, ...]


def text(path: Path) -> str:
    """`spec.a[].b`, without numbers."""
    return "".join("[]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def leaves(model: type, body: Any, path: Path = ()) -> Iterator[tuple[Path, Field]]:
    """Every field that holds no other model, below what `body` has: lists are entered at their first item."""
    for field in fields_of(model):
        here = (*path, field.name)
        inner, is_list = item_type(field.type), get_origin(field.type) is list
        value = body.get(field.name) if isinstance(body, dict) else None
        if is_model(inner) and is_list and value:
            yield from leaves(inner, value[0], (*here, 0))
        elif is_model(field.type):
            yield from leaves(field.type, value or {}, here)
        else:
            yield here, field


def with_value(body: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A copy in which one field has another value."""
    found = copy.deepcopy(body)
    here: Any = found
    for part, following in pairwise(path):
        if isinstance(here, list):
            here = here[int(part)]
        elif here.get(part) is None:
            here[part] = [] if isinstance(following, int) else {}
            here = here[part]
        else:
            here = here[part]
    here[path[-1]] = value
    return found


def value_at(body: Any, path: Path) -> Any:
    for part in path:
        if isinstance(body, list) and isinstance(part, int):
            body = body[part] if part < len(body) else None
        else:
            body = body.get(part) if isinstance(body, dict) else None
    return body


def another(field: Field, value: Any) -> Any:
    """A value of the field's type that is not this one."""
    kind = field.type
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(str(one) for one in kind if str(one) != str(value))
    if kind is bool:
        return not value
    if kind is int:
        return (value or 0) + 1
    if kind is timedelta:
        return "7s"
    if kind is Quantity:
        return "3Gi" if str(value) != "3Gi" else "5Gi"
    if get_origin(kind) is list:
        return [*(value or []), _item(get_args(kind)[0])]
    if get_origin(kind) is dict:
        inner = get_args(kind)[1] if get_args(kind) else Any
        return {**(value or {}), "another": "3" if inner in (str, Quantity) else {"x": 1}}
    return f"{value or ''}another"


def _item(kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return str(next(iter(kind)))
    return "another" if kind is str else {"name": "another"}
