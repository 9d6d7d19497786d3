"""The types of conditions and the reasons that the source states, found by reading it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "slurm_operator"
# Where something is decided, and where it is told.
PLACES = ("agents", "plan", "reconcilers", "runtime", "safety")
STATED = {"true": 2, "false": 2, "unknown": 2}
# Conditions of Kubernetes nodes have words of Soperator, some under names that ours have too.
ELSEWHERE = "node_conditions.py"
WORD = re.compile(r"[A-Z][A-Za-z]+")


def said() -> tuple[set[str], set[str]]:
    """(types of conditions, reasons of conditions and events)."""
    constants = _constants()
    types: set[str] = set()
    reasons: set[str] = set()
    for path, tree in _trees(PLACES):
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in STATED and len(call.args) >= STATED[name]:
                types |= set(_words(call.args[0], path, constants))
                reasons |= set(_words(call.args[1], path, constants))
            for keyword in call.keywords:
                if keyword.arg == "reason":
                    reasons |= set(_words(keyword.value, path, constants))
    return types, reasons


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
