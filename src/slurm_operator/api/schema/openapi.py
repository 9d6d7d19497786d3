"""From models to structural OpenAPI schemas, as the API server wants them in a CRD."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from slurm_operator.api.schema import durations
from slurm_operator.api.schema.cel import matches
from slurm_operator.api.schema.codec import plain
from slurm_operator.api.schema.model import (
    Choice,
    Field,
    Prop,
    Rule,
    cannot_change,
    fields_of,
    is_model,
    item_type,
)
from slurm_operator.api.shared.meta import Meta

Schema = dict[str, Any]

QUANTITY_PATTERN: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"

# `2`, `500m`, `4Gi`: an amount as Kubernetes writes it.
Quantity = Annotated[int | str, "quantity"]
# The same in overrides, where core Kubernetes also takes `cpu: 0.5` without quotes.
Amount = Annotated[Any, "quantity"]

INT_OR_STRING: Final = {"x-kubernetes-int-or-string": True}
PASS_THROUGH: Final = {"x-kubernetes-preserve-unknown-fields": True}
_DURATION_LENGTH: Final = 64  # Also tells CEL how much a duration can cost.

_SIMPLE: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    int: {"type": "integer", "format": "int32"},
    datetime: {"type": "string", "format": "date-time"},
    timedelta: {"type": "string", "maxLength": _DURATION_LENGTH},
    Meta: {"type": "object"},
}


def schema(cls: type, *, defaults: bool = True, is_override: bool = False) -> Schema:
    """The schema of a model.

    `defaults=False` is for status: there the API server must not invent facts. In an override an explicit
    null says "remove this", so it has to survive.
    """
    required = [field.name for field in fields_of(cls) if field.prop.is_required]
    return {
        "type": "object",
        "properties": {field.name: _field(field, defaults, is_override) for field in fields_of(cls)},
        **({"required": required} if required else {}),
        **({"x-kubernetes-map-type": "atomic"} if getattr(cls, "ATOMIC", False) else {}),
        **_validations(getattr(cls, "RULES", ())),
        **(PASS_THROUGH if getattr(cls, "OPEN", False) else {}),
    }


def _field(field: Field, defaults: bool, is_override: bool) -> Schema:
    facts = field.prop
    body = _of_type(field.type, facts, defaults)
    default = published_default(field) if defaults else None
    if is_override or facts.nullable or (defaults and can_be_emptied(field)):
        body["nullable"] = True
    if is_override and "additionalProperties" in body:
        body["additionalProperties"]["nullable"] = True
    return {
        "description": describe(field),
        **body,
        **_limits(facts),
        **_validations([*_rules(field), *getattr(field.type, "RULES", ())]),
        **({} if default is None else {"default": default}),
    }


def can_be_emptied(field: Field) -> bool:
    """Whether an empty object there says the same as none, and server-side apply may leave null in its place.

    It does when somebody applied entries of an object and then an empty one. Where an empty object says
    something, such as `managed: {}`, null stays refused. Where there is a default, it is filled in.
    """
    is_object = get_origin(field.type) is dict or is_model(field.type)
    is_atomic = getattr(field.type, "ATOMIC", False)
    means_nothing = not field.prop.is_required and field.prop.default is not None
    return is_object and not is_atomic and means_nothing and published_default(field) is None


def describe(field: Field) -> str:
    """What `kubectl explain` says: the description, the meaning of each word, what to use instead."""
    parts = [field.prop.description]
    parts += [f"{choice}: {choice.meaning}" for choice in _choices(field.type)]
    if field.prop.deprecated:
        parts.append(f"Deprecated: {field.prop.deprecated}")
    return "\n".join(parts)


def _choices(type_: Any) -> list[Choice]:
    return list(type_) if isinstance(type_, type) and issubclass(type_, Choice) else []


def _of_type(type_: Any, facts: Prop, defaults: bool) -> Schema:
    if type_ in _SIMPLE:
        return dict(_SIMPLE[type_])
    if _choices(type_):
        return {"type": "string", "enum": [str(choice) for choice in type_]}
    if is_model(type_):
        return schema(type_, defaults=defaults)
    if get_origin(type_) is Annotated:
        is_any = get_args(type_)[0] is Any
        return {**(PASS_THROUGH if is_any else INT_OR_STRING), "pattern": QUANTITY_PATTERN}
    if get_origin(type_) in (Union, UnionType):
        assert set(get_args(type_)) == {int, str}, f"no schema for {type_}"
        return dict(INT_OR_STRING)
    return _collection(type_, facts, defaults)


def _collection(type_: Any, facts: Prop, defaults: bool) -> Schema:
    inner = item_type(type_)
    if get_origin(type_) is dict:
        if inner is not Any:
            return {"type": "object", "additionalProperties": _of_type(inner, facts, defaults)}
        shape = schema(facts.shape, is_override=True) if facts.shape else {"type": "object"}
        return {**shape, **PASS_THROUGH}
    assert inner is not None, f"no schema for {type_}"
    return {"type": "array", "items": _of_type(inner, facts, defaults), **_list_type(facts)}


def _list_type(facts: Prop) -> Schema:
    if facts.keys:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(facts.keys)}
    return {"x-kubernetes-list-type": facts.list_type} if facts.list_type else {}


def _limits(facts: Prop) -> Schema:
    limits = {
        "minimum": facts.minimum,
        "maximum": facts.maximum,
        "minLength": facts.min_length,
        "maxLength": facts.max_length,
        "minItems": facts.min_items,
        "maxItems": facts.max_items,
        "pattern": facts.pattern or None,
        "format": facts.format or None,
    }
    return {name: limit for name, limit in limits.items() if limit is not None}


def _rules(field: Field) -> Iterator[Rule]:
    if field.prop.immutable:
        yield Rule(
            expression="self == oldSelf",
            message=cannot_change(field.name),
        )
    if field.type is timedelta:
        yield Rule(expression=matches(durations.PATTERN), message="write a duration like 90s, 15m or 1h30m")
    yield from field.prop.rules


def _validations(rules: Any) -> Schema:
    written = [
        {"rule": rule.expression, "message": rule.message, **({"fieldPath": rule.path} if rule.path else {})}
        for rule in rules
    ]
    return {"x-kubernetes-validations": written} if written else {}


def undescribed(body: Any) -> Any:
    """The same schema without its descriptions: an older version says the same in half the bytes."""
    if isinstance(body, list):
        return [undescribed(item) for item in body]
    if not isinstance(body, dict):
        return body
    # A property may be called `description` too; then it is a schema, not a text.
    return {
        name: undescribed(inner)
        for name, inner in body.items()
        if name != "description" or not isinstance(inner, str)
    }


def published_default(field: Field) -> Any:
    """The default as the API server fills it in; None where leaving the field out says the same.

    The API server descends into an object only if it is there, so an object with defaults inside has one
    itself; written out, because the API server checks it against the rules before it would fill it up.
    """
    return None if field.prop.is_required else _published(field, field.prop.default)


def _published(field: Field, value: Any) -> Any:
    if field.prop.deprecated or value in (None, "", [], {}):
        return None
    if not is_model(field.type):
        return plain(value)
    inner = {
        below.name: _published(below, getattr(value, below.attribute)) for below in fields_of(field.type)
    }
    return {name: below for name, below in inner.items() if below is not None} or None
