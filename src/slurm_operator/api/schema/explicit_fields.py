"""Just what somebody said: a model without the fields that have their default.

The API server writes defaults into every object, so a composed object that were copied as it is would fix
today's defaults in its parts for good.
"""

from typing import Any

from slurm_operator.api.schema.codec import plain
from slurm_operator.api.schema.model import fields_of, is_model


def explicit_fields(value: Any, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a model that differ from their default, ready to be written."""
    cls: type = type(value)
    given = (
        (field.name, _explicit_value(getattr(value, field.attribute), field.prop.default))
        for field in fields_of(cls)
        if field.attribute not in without
    )
    return {name: inner for name, inner in given if inner is not None}


def _explicit_value(value: Any, default: Any) -> Any:
    if value is None or value == default:
        return None
    # Where there is a model by default, the API server fills in the rest of one; where there is none, its
    # mere presence says something.
    return explicit_fields(value) if is_model(type(value)) else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [explicit_fields(item) if is_model(type(item)) else plain(item) for item in value]
    return plain(value)
