"""Custom resources as frozen models: each fact about a field stands once, in its `prop`.

From these facts come the CRD (`crd`), the reference pages (`reference`), the defaults that reconcilers see,
and the warnings about old fields (`problems`).
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, Final, TypeVar, Union, cast, dataclass_transform, get_args, get_origin, overload

import msgspec

from slurm_operator import wire

T = TypeVar("T")

REQUIRED: Final = object()

# What Python puts into every class body.
_NOT_OURS: Final = {"__dict__", "__weakref__", "__annotate__", "__annotate_func__", "__annotations_cache__"}


class Rule(wire.Record):
    """A check in CEL that the API server runs on every write, and what the user reads when it fails.

    Some say the same in Python too: `holds` gets the value and the one before, or None. An API server with
    CRDs of the Slinky operator does not know these rules, and the webhook and the reconcilers do.
    """

    expression: str
    message: str
    path: str = ""
    holds: Callable[[Any, Any], bool] | None = None


class Prop(wire.Record):
    """What is known about one field besides its name and type."""

    description: str
    default: Any = REQUIRED
    immutable: bool = False
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    pattern: str = ""
    format: str = ""
    keys: tuple[str, ...] = ()
    list_type: str = ""
    name: str = ""
    rules: tuple[Rule, ...] = ()
    shape: type | None = None
    nullable: bool = False
    deprecated: str = ""

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED


@overload
def prop(description: str, *, default: T, **facts: Any) -> T: ...
@overload
def prop(description: str, **facts: Any) -> Any: ...
def prop(description: str, **facts: Any) -> Any:
    """One field of a model. Without a `default` it is required.

    `immutable`, `minimum`, `maximum`, `pattern`, `rules` and limits of lengths: what the API server refuses.
    `keys`: the list is a map with these keys. `list_type`: the list is a `set`, or `atomic`. `name`: how the
    field is written in YAML, where that is not its attribute in camelCase. `shape`: the field is plain JSON
    that we pass on untouched, and this model describes the parts of it that are worth checking. `nullable`:
    an explicit null is taken too, and means absent. `deprecated`: what to do instead; whoever sets the field
    is told.
    """
    for name in ("keys", "rules"):
        facts[name] = tuple(facts.get(name, ()))
    return Prop(description=description, **facts)


class _ModelMeta(msgspec.StructMeta):
    """Takes the props out of a class body, so that msgspec sees ordinary fields with ordinary defaults."""

    def __new__(mcls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> Any:
        props = {field: facts for base in bases for field, facts in getattr(base, "PROPS", {}).items()}
        for field, facts in list(body.items()):
            if isinstance(facts, Prop):
                props[field] = facts
                body[field] = _plain_field(facts)
        # msgspec hands every option down to subclasses but this one.
        return super().__new__(mcls, name, bases, body | {"PROPS": props}, kw_only=True, **options)


def _plain_field(facts: Prop) -> Any:
    name = facts.name or None
    return wire.field(name=name) if facts.is_required else wire.field(default=facts.default, name=name)


class _Model(msgspec.Struct, metaclass=_ModelMeta, frozen=True, gc=False, rename="camel"):
    """The common base of all models: camelCase on the wire, unknown fields passed over."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(prop,))
def model(cls: type[T]) -> type[T]:
    """Make a class with `prop` fields a model. It may extend another one, without zero-argument `super()`."""
    if isinstance(cls, _ModelMeta):
        return cls
    body = {name: value for name, value in vars(cls).items() if name not in _NOT_OURS}
    # Newer Pythons keep annotations as a function of the class they were written in.
    body["__annotations__"] = inspect.get_annotations(cls)
    return cast("type[T]", _ModelMeta(cls.__name__, (_Model,), body))


def cannot_change(name: str) -> str:
    """What is said about an `immutable` field."""
    return f"{name} cannot change; to use another one, delete the object and create it again"


class Choice(StrEnum):
    """A word out of a few. Each member is written as the word and what it means."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> "Choice":
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member


class Field(wire.Record):
    """One field as code that walks models wants it; `type` without the `| None`."""

    attribute: str
    name: str
    type: Any
    prop: Prop


def is_model(type_: object) -> bool:
    return isinstance(type_, _ModelMeta)


@cache
def fields_of(cls: type[Any]) -> tuple[Field, ...]:
    """The fields of a model in the order they were written, those of the model it extends first."""
    props: Mapping[str, Prop] = cls.PROPS
    return tuple(
        Field(
            attribute=field.name,
            name=field.encode_name,
            type=_without_none(field.type),
            prop=props[field.name],
        )
        for field in msgspec.structs.fields(cls)
    )


def _without_none(type_: Any) -> Any:
    if NoneType not in get_args(type_):
        return type_
    return Union[tuple(arg for arg in get_args(type_) if arg is not NoneType)]  # noqa: UP007


@cache
def item_type(type_: Any) -> Any:
    """What a list or a map holds; None for any other type."""
    origin = get_origin(type_)
    if origin in (list, tuple, Sequence):
        return get_args(type_)[0]
    if origin in (dict, Mapping):
        return get_args(type_)[1]
    return None
