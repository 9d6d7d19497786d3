"""From JSON to models and back."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

from slurm_operator import wire
from slurm_operator.api.schema import durations
from slurm_operator.api.schema.model import fields_of, is_model, item_type

T = TypeVar("T")

# What most leaves are, and what is the same in JSON and in models.
_SCALARS = frozenset({str, int, float, bool, type(None)})


def decoder(cls: type[T]) -> Callable[[bytes | bytearray | memoryview], T]:
    """A function from JSON bytes to a model, as watch caches want it."""

    def decode(data: bytes | bytearray | memoryview) -> T:
        return read(cls, wire.decode_any(bytes(data)))

    return decode


def read(cls: type[T], value: Mapping[str, Any]) -> T:
    """The model in `value`. `null` means absent, unknown fields are passed over; raises DecodeError."""
    return wire.convert(_tidy(value, cls), cls)


def _tidy(value: Any, type_: Any) -> Any:
    """`value` without nulls and with durations read, as deep as models go: foreign JSON stays as it is."""
    if type_ is None or (type(value) in _SCALARS and type_ is not timedelta):
        return value
    if isinstance(value, Mapping) and is_model(type_):
        types = _types(type_)
        return {key: _tidy(inner, types.get(key)) for key, inner in value.items() if inner is not None}
    if isinstance(value, str) and type_ is timedelta:
        return _duration(value)
    inner_type = item_type(type_)
    if isinstance(value, list) and inner_type is not None:
        return [_tidy(item, inner_type) for item in value]
    if isinstance(value, Mapping) and inner_type not in (None, Any):
        return {key: _tidy(item, inner_type) for key, item in value.items()}
    return value


@cache
def _types(cls: type) -> Mapping[str, Any]:
    """The types of a model's fields, by their names in JSON."""
    return {field.name: field.type for field in fields_of(cls)}


def _duration(text: str) -> timedelta:
    try:
        return durations.parse(text)
    except ValueError as error:
        raise wire.DecodeError(str(error)) from error


def plain(value: Any) -> Any:
    """Dictionaries and lists, ready to be written: without absent fields, durations as people type them."""
    cls: type = type(value)
    if cls in _SCALARS:
        return value
    if is_model(cls):
        pairs = ((field.name, getattr(value, field.attribute)) for field in fields_of(cls))
        return {name: plain(inner) for name, inner in pairs if inner is not None}
    if isinstance(value, timedelta):
        return durations.text(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return wire.plain(value)
