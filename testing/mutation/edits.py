"""Every small change that the rules below make of one source file.

Messages, logs, annotations and constants of modules stay: what they say is for people, and other tests read it.
"""

import ast
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from slurm_operator import wire

ROOT: Final = Path(__file__).parents[2]

_COMPARED: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Spot = tuple[int, int]
Place = tuple[str, bool, ast.expr | ast.stmt]  # In which function, whether that may give None, and what.


class Mutant(wire.Record):
    """One change: `old` at these characters of the file becomes `new`."""

    name: str
    area: str
    path: str
    function: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def applied(self) -> str:
        source = (ROOT / self.path).read_text()
        assert source[self.start : self.end] == self.old, f"{self.path} is another one by now"
        return source[: self.start] + self.new + source[self.end :]


def mutants(area: str, path: str) -> list[Mutant]:
    """In the order of the file. The name follows from what is changed, not from the line it stands in."""
    source = (ROOT / path).read_text()
    found: list[Mutant] = []
    seen: dict[tuple[str, str, str], int] = {}
    for function, node, old, new in _changes(source):
        which = (function, old, new)
        seen[which] = seen.get(which, 0) + 1
        key = f"{path}/{function}/{old}/{new}/{seen[which]}"
        start, end = _span(source, node)
        found.append(
            Mutant(
                name=f"{area}-{zlib.crc32(key.encode()):08x}", area=area, path=path, function=function,
                line=node.lineno, start=start, end=end, old=old, new=new,
            )
        )  # fmt: skip
    return found


def compiles(mutant: Mutant) -> bool:
    try:
        compile(mutant.applied(), mutant.path, "exec")
    except SyntaxError:
        return False
    return True


def _changes(source: str) -> Iterator[tuple[str, ast.expr | ast.stmt, str, str]]:
    for function, may_be_none, node in _nodes(ast.parse(source)):
        old = ast.get_source_segment(source, node)
        assert old is not None
        for new in _replacements(source, node, may_be_none=may_be_none):
            if new != old:
                yield function, node, old, new


def _nodes(tree: ast.AST, within: tuple[str, ...] = ()) -> Iterator[Place]:
    """What functions do. How an object is set up is left out: without that nothing works, and all would notice."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.ClassDef):
            yield from _nodes(child, (*within, child.name))
        elif isinstance(child, _FUNCTIONS) and child.name != "__init__":
            yield from _of_function(child, within)


def _of_function(function: Function, within: tuple[str, ...]) -> Iterator[Place]:
    returned = ast.unparse(function.returns) if function.returns is not None else "None"
    for statement in function.body:
        yield from _within(statement, (*within, function.name), "| None" in returned)


def _within(node: ast.AST, within: tuple[str, ...], may_be_none: bool) -> Iterator[Place]:
    """Logs and assertions are left out, and types."""
    if isinstance(node, ast.Assert | ast.JoinedStr) or _is_talk(node):
        return
    if isinstance(node, _FUNCTIONS):
        yield from _of_function(node, within)
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield ".".join(within), may_be_none, node
    for name, value in ast.iter_fields(node):
        if name == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _within(child, within, may_be_none)


def _is_talk(node: ast.AST) -> bool:
    """A docstring, or a line of the log."""
    if not isinstance(node, ast.Expr):
        return False
    call = node.value.value if isinstance(node.value, ast.Await) else node.value
    if isinstance(call, ast.Constant):
        return True
    function = call.func if isinstance(call, ast.Call) else None
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "log"


def _replacements(source: str, node: ast.expr | ast.stmt, *, may_be_none: bool) -> Iterator[str]:
    def text(part: ast.expr) -> str:
        return ast.get_source_segment(source, part) or ""

    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            yield f"({text(left)}) {_COMPARED[type(operator)]} ({text(right)})"
        case ast.BoolOp(op=operator, values=values):
            word = " and " if isinstance(operator, ast.And) else " or "
            other = " or " if isinstance(operator, ast.And) else " and "
            for at in range(len(values)):
                kept = [text(value) for index, value in enumerate(values) if index != at]
                yield f"({word.join(kept)})"
            yield "(" + other.join(f"({text(value)})" for value in values) + ")"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"bool({text(operand)})"
        case ast.IfExp(body=body, orelse=otherwise):
            yield f"({text(body)})"
            yield f"({text(otherwise)})"
        case ast.Return(value=ast.Constant(value=bool() as value)):
            yield f"return {not value}"
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            if may_be_none:
                yield "return None"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign():
            yield "pass"
        case ast.Continue():
            yield "break"
        case _:
            return


def _span(source: str, node: ast.expr | ast.stmt) -> Spot:
    lines = source.splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (
        _at(lines, node.lineno, node.col_offset),
        _at(lines, node.end_lineno, node.end_col_offset),
    )


def _at(lines: list[str], line: int, column: int) -> int:
    """Columns of the syntax tree count bytes."""
    before = sum(len(text) for text in lines[: line - 1])
    return before + len(lines[line - 1].encode()[:column].decode())
