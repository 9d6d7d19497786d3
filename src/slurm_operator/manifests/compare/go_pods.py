"""Pods and containers as a typed Go client writes them back: without zeros, with what it always writes.

The Slinky operator hashes this text. To give a worker the label that it looks for, we write the same.
"""

import json
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from slurm_operator.manifests.compare.differences import quantity
from slurm_operator.manifests.compare.pod_fields import fields

_ZERO: Mapping[str, Any] = {"s": "", "b": False, "n": 0, "I": 0, "Q": "0"}

# What Go's encoder escapes so that JSON may stand in HTML, and Python's does not.
_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SMALLEST = Decimal("1e-9")


def go_json(value: Any) -> bytes:
    """As Go's json.Marshal writes a map: keys in order, no spaces."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_ESCAPED).encode()


def typed(value: Any, type_: str) -> Any:
    """One value after a round through a Go struct of this type (see `pod_fields`)."""
    if type_.startswith("*"):
        return None if value is None else typed(value, type_[1:])
    if type_.startswith("[]"):
        return [typed(item, type_[2:]) for item in value] if isinstance(value, list | tuple) else None
    if type_.startswith("{}"):
        return {key: typed(item, type_[2:]) for key, item in value.items()} if value else None
    if type_ == "Q":
        return canonical(0 if value is None else value)
    if type_ in _ZERO:
        return _ZERO[type_] if value is None else value
    return _struct(value if isinstance(value, Mapping) else {}, type_)


def _struct(value: Mapping[str, Any], type_: str) -> dict[str, Any]:
    found = {}
    for name, field in fields()[type_].items():
        inner = typed(value.get(name), field.type)
        if field.is_always_written or not _is_left_out(inner, field.type):
            found[name] = inner
    return found


def _is_left_out(value: Any, type_: str) -> bool:
    """What `omitempty` leaves out: zeros, empty lists and maps, absent pointers; never a struct."""
    if type_.startswith("*"):
        return value is None
    if type_.startswith(("[]", "{}")):
        return not value
    return type_ in _ZERO and type_ not in ("I", "Q") and value == _ZERO[type_]


def canonical(amount: str | int | float) -> str:
    """A Kubernetes quantity as Go writes it: the largest unit that leaves a whole number."""
    text, number = str(amount), quantity(amount)
    if not isinstance(number, Decimal):
        return text
    if not number:
        return "0"
    if text.endswith("i") and abs(number) >= 1024:
        return _in_units(number.to_integral_value(ROUND_CEILING), _BINARY, Decimal(1024))
    exact = (number / _SMALLEST).to_integral_value(ROUND_CEILING)
    if text[-1].isdigit() and "e" in text.lower():
        return _with_exponent(exact, "e" if "e" in text else "E")
    return _in_units(exact, _DECIMAL, Decimal(1000))


def _with_exponent(whole: Decimal, letter: str) -> str:
    power = -9
    while whole % 1000 == 0:
        power, whole = power + 3, whole / 1000
    return f"{whole:f}{letter}{power}" if power else f"{whole:f}"


def _in_units(whole: Decimal, units: tuple[str, ...], factor: Decimal) -> str:
    *_, last = units
    for unit in units:
        if whole % factor or unit == last:
            return f"{whole:f}{unit}"
        whole /= factor
    raise AssertionError("the last unit ends it")
