"""The types of conditions that the source states, and the reasons that it gives, found by reading it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from slurm_operator.conditions import Reason

SOURCE = Path(__file__).parents[1] / "src" / "slurm_operator"
# Where something is decided, and where it is told.
PLACES = ("agents", "plan", "reconcilers", "runtime", "safety")
STATED = {"true", "false", "unknown", "quoted"}
# Conditions of Kubernetes nodes have words of Soperator, some under names that ours have too.
ELSEWHERE = "node_conditions.py"
WORD = re.compile(r"[A-Z][A-Za-z]+")


def said_types() -> set[str]:
    constants = _constants()
    return {
        type_
        for path, tree in _trees(PLACES)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        if _called(call) in STATED and len(call.args) > 1
        for type_ in _words(call.args[0], path, constants)
    }


def given_reasons() -> set[str]:
    """Members of `Reason` that a decision names. That nothing else is given, the type checker sees to."""
    return {
        Reason[node.attr].value
        for _, tree in _trees(PLACES)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == Reason.__name__
    }


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _trees(places: tuple[str, ...] = ("",)) -> Iterator[tuple[Path, ast.Module]]:
    for place in places:
        for path in sorted((SOURCE / place).rglob("*.py")):
            yield path, ast.parse(path.read_text())


def _constants() -> dict[tuple[str, str], str]:
    """Strings that a module or a class names, by module and name, and by name alone where only one is called so."""
    found: dict[tuple[str, str], str] = {}
    for path, tree in _trees():
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=targets, value=ast.Constant(value=str(text))):
                    named = [target.id for target in targets if isinstance(target, ast.Name)]
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text))):
                    named = [name]
                case _:
                    continue
            for name in named:
                found[str(path), name] = text
                if path.name != ELSEWHERE:
                    found.setdefault(("", name), text)
    return found


def _words(node: ast.expr, path: Path, constants: dict[tuple[str, str], str]) -> Iterator[str]:
    """What an expression can be, as far as it stands in the source."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if WORD.fullmatch(node.value):
            yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _words(node.body, path, constants)
        yield from _words(node.orelse, path, constants)
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        text = constants.get((str(path), name)) or (constants.get(("", name)) if name.isupper() else None)
        if text is not None and WORD.fullmatch(text):
            yield text
