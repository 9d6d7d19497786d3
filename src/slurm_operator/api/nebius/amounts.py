"""Kubernetes quantities as numbers, for checks that a schema cannot make."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?P<unit>[KMGTPE]i|[numkMGTPE]|)", re.ASCII
)
_EXPONENT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def amount(text: object) -> Decimal | None:
    """The number that a quantity stands for; None when it is no quantity."""
    written = str(text)
    if _EXPONENT.fullmatch(written):
        return Decimal(written)
    found = _QUANTITY.fullmatch(written)
    if found is None:
        return None
    number, unit = Decimal(found["number"]), found["unit"]
    return number * 2 ** _BINARY[unit] if unit in _BINARY else number.scaleb(_DECIMAL[unit])


def amount_in(resources: Mapping[str, Any], name: str) -> Decimal | None:
    """How much of a resource a container asks for; None when it does not say, or says no quantity."""
    return amount(resources[name]) if name in resources else None
