"""Files and modules that a text names, so that a test can say which of them do not exist.

Three ways to name something are understood: a path from the root of the repository, a path from
`src/slurm_operator` or `src`, as the documentation shortens it, and a dotted name.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "slurm_operator"

# A path from one of our folders. Before it there is no other path, address or variable; `*` stands for any name.
_ROOTED = re.compile(r"(?<![\w./~$}-])(?:src|tests|testing|chaos|bench|images|tools)/[\w./*-]*")
# In Markdown only: a file of ours, by a shortened path or by its bare name.
_FILE = re.compile(r"`([\w./*-]*[\w*]\.(?:py|c|h))`")
# In Markdown only: a shortened folder, which a slash at its end tells from `nodeset/cpu`, an object.
_FOLDER = re.compile(r"`([a-z_]+(?:/[a-z_]+)*/)`")
_DOTTED = re.compile(r"(?<![\w./-])(?:slurm_operator|slurm_local)(?:\.(?!__)[A-Za-z_]\w*)+")
_RUN = re.compile(r"python -m ([\w.]+)")
_IMPORT = re.compile(r"^from ([\w.]+) import ([\w, ]+)$", re.MULTILINE)


def missing_in_code(text: str) -> list[str]:
    """What a text, such as a program, names by its whole path or dotted name, and is not there."""
    paths = (named.rstrip(".") for named in _ROOTED.findall(text))
    dotted = (*_DOTTED.findall(text), *_RUN.findall(text))
    return sorted(
        {*(path for path in paths if not is_path(path)), *(name for name in dotted if not is_name(name))}
    )


def missing_in_page(text: str) -> list[str]:
    """What a page names and is not there: also by a short path, or in an import of an example."""
    files = (name for name in _FILE.findall(text) if not is_file(name))
    folders = (name for name in _FOLDER.findall(text) if not is_path(name) and not is_short_path(name))
    imports = (name for name in _imported(text) if not is_name(name))
    return sorted({*missing_in_code(text), *files, *folders, *imports})


@cache
def is_path(named: str) -> bool:
    """From the root of the repository. A module may be named without its ending, as pytest takes a folder."""
    return _is_there(ROOT, named)


def is_short_path(named: str) -> bool:
    return _is_there(SOURCE, named) or _is_there(SOURCE.parent, named)


def is_file(named: str) -> bool:
    """A bare name is that of any file of ours."""
    return is_path(named) or is_short_path(named) or ("/" not in named and named in _file_names())


@cache
def is_name(dotted: str) -> bool:
    """A module, or what a module has at its top."""
    return any(_resolves(folder, dotted.split(".")) for folder in (ROOT / "src", ROOT, ROOT / "tests"))


def defines(file: Path, name: str) -> bool:
    """Whether a module has such a function or class, a method included: `Loop.reconcile`."""
    tree: ast.AST = ast.parse(file.read_text())
    for part in name.split("."):
        found = next((node for node in _defined(tree) if node.name == part), None)
        if found is None:
            return False
        tree = found
    return True


def _is_there(folder: Path, named: str) -> bool:
    plain = named.rstrip("/")
    if "*" in plain:
        return any(folder.glob(plain))
    place = folder / plain
    return place.is_dir() or (place.is_file() and not named.endswith("/"))


@cache
def _file_names() -> frozenset[str]:
    folders = ("src", "tests", "testing", "chaos", "bench", "images")
    return frozenset(file.name for folder in folders for file in (ROOT / folder).rglob("*") if file.is_file())


def _imported(text: str) -> Iterator[str]:
    for module, names in _IMPORT.findall(text):
        if is_ours(module):
            yield from (f"{module}.{name.strip()}" for name in names.split(","))


def is_ours(dotted: str) -> bool:
    top = dotted.partition(".")[0]
    return any((folder / top).is_dir() for folder in (ROOT / "src", ROOT))


def _resolves(folder: Path, parts: list[str]) -> bool:
    place = folder
    for number, part in enumerate(parts):
        if (place / part).is_dir():
            place /= part
            continue
        module = place / f"{part}.py"
        rest = parts[number + 1 :] if module.is_file() else parts[number:]
        holder = module if module.is_file() else place / "__init__.py"
        return holder.is_file() and (not rest or _has(holder, rest[0]))
    return place != folder


def _has(module: Path, name: str) -> bool:
    return any(name in _bound(node) for node in ast.parse(module.read_text()).body)


def _bound(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {one.asname or one.name for one in names}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


def _defined(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
