"""The operator with one condition taken out: what the promises are worth, if nobody notices that?"""

import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any


@contextmanager
def mutated(target: Callable | property, old: str, new: str) -> Iterator[None]:
    """Inside, the function runs with `old` in its text replaced by `new`, for whoever imported it."""
    function: FunctionType = _plain(target)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{old!r} is not (or not only once) in {function.__qualname__}"
    made: dict = {}
    exec(compile(source.replace(old, new), "<mutant>", "exec"), function.__globals__, made)  # noqa: S102
    code = function.__code__
    function.__code__ = _plain(made[function.__name__]).__code__
    try:
        yield
    finally:
        function.__code__ = code


def _plain(target: Callable | property) -> FunctionType:
    """What is behind a property, or behind a decorator such as `once`."""
    return inspect.unwrap(target.fget if isinstance(target, property) else target)


def is_passed(test: Callable[..., None]) -> bool:
    """Whether a test without fixtures passes, with every row of its table."""
    tables = [mark.args for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    try:
        for rows in itertools.product(*(_rows(*table) for table in tables)):
            test(**{name: value for row in rows for name, value in row.items()})
    except Exception:
        return False
    return True


def _rows(names: str | tuple[str, ...], values: Any) -> Iterator[dict[str, Any]]:
    named = names.split(",") if isinstance(names, str) else names
    for value in values:
        given = getattr(value, "values", value)
        yield dict(zip(named, given if len(named) > 1 or given is not value else (given,), strict=True))
