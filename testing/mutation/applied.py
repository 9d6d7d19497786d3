"""Runs the code with a mutant in it: where a function is defined already, its code is exchanged."""

import importlib
import inspect
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

from testing.mutation.edits import Mutant


def apply(mutant: Mutant) -> None:
    """For whoever has imported it, too. There is no way back: do it in a process of its own."""
    module = importlib.import_module(mutant.path.removeprefix("src/").removesuffix(".py").replace("/", "."))
    function = _outermost(module, mutant.function.split("."))
    function.__code__ = _code(mutant, function.__qualname__)


def _outermost(module: object, path: list[str]) -> FunctionType:
    """Functions within functions are part of the code of the outer one."""
    found: Any = module
    for name in path:
        found = _bare(vars(found)[name])
        if isinstance(found, FunctionType):
            return found
    raise TypeError(f"{'.'.join(path)} is no function")


def _bare(found: Any) -> Any:
    if isinstance(found, property):
        return found.fget
    if isinstance(found, cached_property):
        return found.func
    if isinstance(found, classmethod | staticmethod):
        return found.__func__
    return inspect.unwrap(found)


def _code(mutant: Mutant, name: str) -> CodeType:
    [found] = [
        code
        for code in _all_code(compile(mutant.applied(), mutant.path, "exec", dont_inherit=True))
        if code.co_qualname == name
    ]
    return found


def _all_code(code: CodeType) -> list[CodeType]:
    inner = [one for const in code.co_consts if isinstance(const, CodeType) for one in _all_code(const)]
    return [code, *inner]
