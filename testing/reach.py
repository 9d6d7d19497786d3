"""What of the sources a program can get to: modules from its entry points, then names from what runs.

Both are found by name and not by type, so what shares its name with something in use counts as used.
"""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Where the packages of the program lie, by the name each is imported by; images call their own `slurm_entry`.
PACKAGES = {
    "slurm_operator": ROOT / "src" / "slurm_operator",
    "slurm_local": ROOT / "src" / "slurm_local",
    "slurm_entry": ROOT / "images" / "entry",
}

# Commands, agents and `python -m` are looked up by a string that holds nothing else.
_LOOKED_UP = re.compile(r"[\w.:]+")

# Bases that give fields or a shape, and call no method of a class by a name that it chose.
_CALLS_NOTHING = {
    "Enum",
    "Exception",
    "Flag",
    "Generic",
    "IntEnum",
    "NamedTuple",
    "Protocol",
    "StrEnum",
    "Struct",
}

_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text())

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


Modules = Mapping[str, Module]


@dataclass(frozen=True)
class Definition:
    """A function, class, method or constant, with the code that runs once somebody uses its name."""

    path: str
    name: str
    code: tuple[ast.AST, ...]
    owner: str = ""


def modules(packages: Mapping[str, Path] = PACKAGES) -> Modules:
    """Every module, by the name it is imported by."""
    found = {}
    for package, folder in packages.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, path)
    return found


def scripts() -> list[tuple[str, str]]:
    """Module and function of each program that an installation puts on PATH."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    targets = (target.partition(":") for target in project["scripts"].values())
    return [(module, function) for module, _, function in targets]


def reached(known: Modules, entries: Iterable[str]) -> set[str]:
    """The modules that entry points import or name, directly or not."""
    seen: set[str] = set()
    waiting = [name for entry in entries for run in _as_program(entry) for name in _with_parents(run)]
    while waiting:
        name = waiting.pop()
        if name in known and name not in seen:
            seen.add(name)
            waiting += [one for named in _modules_named(known[name]) for one in _with_parents(named)]
    return seen


def _with_parents(name: str) -> Iterator[str]:
    """Importing a module runs the packages around it."""
    parts = name.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _as_program(name: str) -> tuple[str, str]:
    """To run a package is to run its `__main__`."""
    return name, f"{name}.__main__"


def _modules_named(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=name, names=names, level=level):
                base = _absolute(module, name, level)
                yield base
                yield from (f"{base}.{alias.name}" for alias in names)
            case ast.Constant(value=str(text)) if text.endswith(".py"):
                yield f"{module.package}.{text.removesuffix('.py')}"
            case ast.Constant(value=str(text)) if _LOOKED_UP.fullmatch(text):
                yield from _as_program(text.partition(":")[0])


def _absolute(module: Module, name: str | None, level: int) -> str:
    if not level:
        return name or ""
    parts = module.package.split(".")
    return ".".join([*parts[: len(parts) + 1 - level], *([name] if name else [])])


def unused(known: Modules, entries: Iterable[str]) -> list[str]:
    """Definitions that nothing which runs mentions, starting at what modules do as they are imported."""
    extended = _library_classes(known)
    waiting: list[Definition] = []
    live = set(entries)
    for module in known.values():
        for node in module.tree.body:
            found = list(_definitions(module, node, extended))
            waiting += found
            if not found:
                live.update(_mentions(node))
    while used := {one.path for one in waiting if one.name in live and (not one.owner or one.owner in live)}:
        live.update(
            name for one in waiting if one.path in used for node in one.code for name in _mentions(node)
        )
        waiting = [one for one in waiting if one.path not in used]
    return sorted(one.path for one in waiting)


def _definitions(module: Module, node: ast.stmt, extended: set[str]) -> Iterator[Definition]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not _registers_itself(node):
            yield Definition(f"{module.name}.{name}", name, (node,))
        case ast.ClassDef(name=name):
            methods = [
                one for one in node.body if isinstance(one, _FUNCTION) and not one.name.startswith("__")
            ]
            inside = [] if name in extended else methods
            rest = [one for one in ast.iter_child_nodes(node) if one not in inside]
            yield Definition(f"{module.name}.{name}", name, tuple(rest))
            for one in inside:
                yield Definition(f"{module.name}.{name}.{one.name}", one.name, (one,), owner=name)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            if name != "__all__":
                yield Definition(f"{module.name}.{name}", name, (node,))
        case _:
            pass


def _library_classes(known: Modules) -> set[str]:
    """Classes that extend one of a library, which calls their methods."""
    ours = {name.rpartition(".")[2] for name in known}
    bases: defaultdict[str, list[str]] = defaultdict(list)
    for module in known.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):  # Several may have one name.
                bases[node.name] += [_base_name(base, ours) for base in node.bases]
    found: set[str] = set()
    while more := {
        name
        for name, above in bases.items()
        if name not in found
        and any(base in found or (base not in bases and base not in _CALLS_NOTHING) for base in above)
    }:
        found |= more
    return found


def _base_name(base: ast.expr, ours: set[str]) -> str:
    """Without its module if that is one of ours, and nothing if it is of a library."""
    match base:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in ours:
            return name
        case ast.Subscript(value=value):
            return _base_name(value, ours)
        case _:
            return ""


def _registers_itself(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """With a decorator that hands it to somebody: `@group.command()`."""
    calls = [one.func for one in function.decorator_list if isinstance(one, ast.Call)]
    return any(isinstance(one, ast.Attribute) and one.attr in ("command", "group") for one in calls)


def _mentions(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.ImportFrom(names=names):
                yield from (alias.name for alias in names if alias.asname)
            case ast.Constant(value=str(text)) if _LOOKED_UP.fullmatch(text):
                yield from re.split(r"[.:]", text)
