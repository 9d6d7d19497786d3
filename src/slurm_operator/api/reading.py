"""From JSON to models and back."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from slurm_operator import wire
from slurm_operator.api import durations
from slurm_operator.api.model import fields_of, is_model, item_type

T = TypeVar("T")


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
    if isinstance(value, Mapping) and is_model(type_):
        types = {field.name: field.type for field in fields_of(type_)}
        return {key: _tidy(inner, types.get(key)) for key, inner in value.items() if inner is not None}
    if isinstance(value, str) and type_ is timedelta:
        return _duration(value)
    inner_type = item_type(type_)
    if isinstance(value, list) and inner_type is not None:
        return [_tidy(item, inner_type) for item in value]
    if isinstance(value, Mapping) and inner_type not in (None, Any):
        return {key: _tidy(item, inner_type) for key, item in value.items()}
    return value


def _duration(text: str) -> timedelta:
    try:
        return durations.parse(text)
    except ValueError as error:
        raise wire.DecodeError(str(error)) from error


def plain(value: Any) -> Any:
    """Dictionaries and lists, ready to be written: without absent fields, durations as people type them."""
    cls: type = type(value)
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
