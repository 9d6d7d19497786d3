"""Small pieces of CEL, the language of the API server's own checks.

The API server refuses rules that might cost too much. It takes `==` between optional values for unaffordable,
as it cannot see how long they are, but thinks little of `in`; so that is how values are compared here.
"""

import re
from collections.abc import Callable
from typing import Any

from slurm_operator.api.schema import durations
from slurm_operator.api.schema.model import Rule


def unchanged(expression: str) -> str:
    """The expression has the same value before and after."""
    return f"{_before(expression)} in [{expression}]"


def unchanged_list(expression: str) -> str:
    """The list has the same entries before and after; null and a missing list have none."""
    before, none = _before(expression), "[dyn(null), dyn([])]"
    return f"{before} in {none} ? {expression} in {none} : {before} in [{expression}]"


def is_list(expression: str) -> str:
    """The field is there and a list, not null."""
    return f"(has({expression}) && !({expression} in [dyn(null)]))"


def kept_once_set(expression: str) -> str:
    """The expression may get a value, and then keeps it."""
    return f"{_before(expression)} in ['', {expression}]"


def matches(pattern: str) -> str:
    """The string looks like the pattern."""
    return f"self.matches('{pattern.replace(chr(92), chr(92) * 2)}')"


def as_duration(expression: str) -> str:
    """The expression holds, unless the string is no duration at all: another rule says that better."""
    return f"!{matches(durations.PATTERN)} || {expression}"


def stays(part: Callable[[Any], Any]) -> Callable[[Any, Any], bool]:
    """In Python: this part of the value is the same before and after."""
    return lambda new, old: old is None or part(new) == part(old)


def stays_once_set(part: Callable[[Any], str]) -> Callable[[Any, Any], bool]:
    """In Python: this part of the value may get a value, and then keeps it."""
    return lambda new, old: old is None or part(old) in ("", part(new))


def looks_like(pattern: str) -> Callable[[Any, Any], bool]:
    """In Python: the string looks like the pattern, to its very end."""
    compiled = re.compile(pattern, re.ASCII)
    return lambda new, old: compiled.fullmatch(new) is not None


def name_fits(limit: int, unless: str = "false") -> Rule:
    """The object's own name leaves room for what the operator adds to it."""
    return Rule(
        expression=f"{unless} || size(self.metadata.name) <= {limit}",
        message="the name is too long: a Service is named after it, and may have 63 characters; "
        f"use at most {limit}",
        path=".metadata",
    )


def _before(expression: str) -> str:
    return expression.replace("self.", "oldSelf.")
