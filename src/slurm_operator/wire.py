"""JSON in and out. The only module that knows which library does it.

Everything read from outside becomes a frozen record that the cyclic collector does not track: trees decoded
from JSON have no cycles, and walking millions of them would stall the event loop for seconds.
"""

from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

import msgspec
from msgspec import Raw as Raw
from msgspec import field as field

T = TypeVar("T")

DecodeError = msgspec.DecodeError  # Also covers ValidationError: right JSON, wrong shape.


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _FrozenMeta(msgspec.StructMeta):
    """Tells the type checker that subclasses are frozen too, without each saying so."""


class Record(msgspec.Struct, metaclass=_FrozenMeta, frozen=True, kw_only=True, gc=False):
    """A value of ours, or of Slurm's JSON: field names as written."""


class CamelRecord(msgspec.Struct, metaclass=_FrozenMeta, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A value of Kubernetes' JSON: `resource_version` here is `resourceVersion` there."""


def decoder(type_: type[T]) -> Callable[[bytes | bytearray | memoryview | str], T]:
    """A function from JSON bytes to `type_`. Make it once, call it often. Unknown fields are passed over."""
    return msgspec.json.Decoder(type_).decode


def decode(data: bytes | str, type_: type[T]) -> T:
    return msgspec.json.decode(data, type=type_)


def decode_any(data: bytes | str) -> Any:
    """Plain dictionaries and lists."""
    return msgspec.json.decode(data)


def encode(value: object) -> bytes:
    """Compact JSON in the value's own key order."""
    return msgspec.json.encode(value)


def encode_sorted(value: object) -> bytes:
    """Compact JSON with sorted keys: the same value always gives the same bytes, fit for a digest."""
    return msgspec.json.encode(value, order="deterministic")


def pretty(value: object) -> str:
    """Indented JSON for people."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def plain(value: object) -> Any:
    """Dictionaries, lists, strings and numbers only; what `encode` would write, without writing it."""
    return msgspec.to_builtins(value)


def convert(value: object, type_: type[T]) -> T:
    """The reverse of `plain`: raises DecodeError when the value does not fit."""
    return msgspec.convert(value, type_)


def replace(record: T, /, **changes: object) -> T:
    """The same record with some fields changed."""
    return msgspec.structs.replace(record, **changes)  # type: ignore[type-var]
