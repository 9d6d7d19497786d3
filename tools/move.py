"""Moves modules and renames what is in them, as `moves.tsv` says: old path, new path, old name, new name.

    python tools/move.py FIRST_ROW-LAST_ROW | PREFIX ...

A row without names moves a module. A row with names renames a function, class or constant of the module at its
old path. Imports and references are rewritten by their scope, other mentions of a module or its file by text.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import libcst as cst
from libcst.metadata import ImportAssignment, MetadataWrapper, ScopeProvider

TABLE = Path(__file__).with_name("moves.tsv")
TREES = ("src", "tests", "bench", "chaos", "testing", "images")
TEXTS = (".py", ".md", ".toml", ".yaml", ".yml", ".txt", ".json", ".cfg", ".sh", ".c")
OUTSIDE_SRC = ("testing", "images")
DOTTED = re.compile(r"(?<![\w./-])(?:slurm_operator|slurm_local|support|simulation)(?:\.\w+)+")
IMPORT = re.compile(r"\s*(from|import) \w")
SLASHED = re.compile(r"(?<![\w./-])(?:src/|tests/)?(?:slurm_operator|slurm_local|support)(?:/\w+)+(?:\.py)?")


class Moves:
    def __init__(self, prefixes):
        rows = [line.split("\t") for line in TABLE.read_text().splitlines() if line and line[0] != "#"]
        chosen = [row for row in rows if any(is_under(row[0], prefix) for prefix in prefixes)]
        self.modules = {old: new for old, new, name, _ in chosen if not name}
        self.names = {(old, name): renamed for old, _, name, renamed in chosen if name}

    def module(self, old):
        """Where a module is afterwards, or something in it."""
        for length in range(old.count(".") + 1, 0, -1):
            head = ".".join(old.split(".")[:length])
            if head in self.modules:
                return self.modules[head] + old[len(head) :]
        return old


def is_under(path, prefix):
    return path == prefix or path.startswith(prefix + ".")


def file_of(module):
    """The file of a module as it stands now; None if there is none."""
    for root in ("src", "tests", "."):
        base = Path(root, *module.split("."))
        for found in (base.with_suffix(".py"), base / "__init__.py"):
            if found.exists():
                return found
    return None


def place_of(module, *, is_package):
    top = module.split(".")[0]
    root = Path("src") if top in ("slurm_operator", "slurm_local") else Path("tests" if top in ("support", "simulation") else ".")
    base = root.joinpath(*module.split("."))
    return base / "__init__.py" if is_package else base.with_suffix(".py")


def module_of(path):
    parts = list(path.with_suffix("").parts)
    if parts[0] in ("src", "tests"):
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# ---- Python


class Rewrite(cst.CSTTransformer):
    """Imports point to the new places; references of what got another name follow."""

    def __init__(self, moves, renamed, aliases):
        self.moves, self.renamed, self.aliases = moves, renamed, aliases

    def leave_Name(self, original_node, updated_node):
        new = self.renamed.get(id(original_node))
        return updated_node.with_changes(value=new) if new else updated_node

    def leave_Import(self, original_node, updated_node):
        names = []
        for alias in updated_node.names:
            old = dotted(alias.name)
            names.append(alias.with_changes(name=expression(self.moves.module(old))))
        return updated_node.with_changes(names=names)

    def leave_SimpleStatementLine(self, original_node, updated_node):
        [first, *more] = original_node.body
        if more or not isinstance(first, cst.ImportFrom) or isinstance(first.names, cst.ImportStar) or first.relative:
            return updated_node
        module = dotted(first.module)
        parts = defaultdict(list)
        for alias in first.names:
            parent, name, asname = self.target(module, alias)
            parts[parent].append((name, asname))
        if list(parts) == [module] and all(n == a.name.value for (n, _), a in zip(parts[module], first.names, strict=True)):
            return updated_node
        statements = []
        for parent, names in parts.items():
            aliases = [
                cst.ImportAlias(
                    name=cst.Name(name),
                    asname=cst.AsName(name=cst.Name(asname)) if asname else None,
                )
                for name, asname in names
            ]
            statements.append(cst.SimpleStatementLine(body=[cst.ImportFrom(module=expression(parent), names=aliases)]))
        statements[0] = statements[0].with_changes(leading_lines=original_node.leading_lines)
        statements[-1] = statements[-1].with_changes(trailing_whitespace=original_node.trailing_whitespace)
        return cst.FlattenSentinel(statements)

    def target(self, module, alias):
        """Where it is imported from, under which name, and as what."""
        name = alias.name.value
        asname = alias.asname.name.value if alias.asname else ""
        full = f"{module}.{name}"
        if full in self.moves.modules:
            parent, _, base = self.moves.modules[full].rpartition(".")
        else:
            parent, base = self.moves.module(module), self.moves.names.get((module, name), name)
        if not asname and base != name and (module, name) in self.aliases:
            asname = name
        if asname == base and base != name:
            asname = ""
        return parent, base, asname


def dotted(node):
    return cst.Module([]).code_for_node(node)


def expression(text):
    return cst.parse_expression(text)


def rewritten(path, source, moves):
    wrapper = MetadataWrapper(cst.parse_module(source))
    scopes = {scope for scope in wrapper.resolve(ScopeProvider).values() if scope is not None}
    taken = {assignment.name for scope in scopes for assignment in scope.assignments}
    own, renamed, aliases = module_of(path), {}, set()
    for scope in scopes:
        for assignment in scope.assignments:
            if isinstance(assignment, ImportAssignment):
                note_import(assignment, moves, taken, renamed, aliases)
            elif (own, assignment.name) in moves.names and isinstance(scope, cst.metadata.GlobalScope):
                new = moves.names[own, assignment.name]
                mark(assignment, new, renamed)
                node = getattr(assignment, "node", None)
                if isinstance(node, cst.FunctionDef | cst.ClassDef):
                    renamed[id(node.name)] = new
                elif isinstance(node, cst.Name):
                    renamed[id(node)] = new
    return wrapper.module.visit(Rewrite(moves, renamed, aliases)).code


def note_import(assignment, moves, taken, renamed, aliases):
    node = assignment.node
    if not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar) or node.relative:
        return
    module = dotted(node.module)
    for alias in node.names:
        name = alias.name.value
        if alias.asname or name != assignment.name:
            continue
        full = f"{module}.{name}"
        new = moves.modules.get(full, full).rpartition(".")[2] if full in moves.modules else moves.names.get((module, name), name)
        if new == name:
            continue
        if new in taken:
            aliases.add((module, name))
        else:
            mark(assignment, new, renamed)


def mark(assignment, new, renamed):
    for access in assignment.references:
        node = access.node
        while isinstance(node, cst.Attribute):
            node = node.value
        renamed[id(node)] = new


# ---- Everything else that names a module


def mentioned(text, moves):
    def by_dots(match):
        return moves.module(match[0])

    def by_slashes(match):
        whole = match[0]
        head = "src/" if whole.startswith("src/") else "tests/" if whole.startswith("tests/") else ""
        ending = ".py" if whole.endswith(".py") else ""
        old = whole.removeprefix(head).removesuffix(".py").replace("/", ".")
        new = moves.module(old)
        if new == old:
            return whole
        root = "" if new.split(".")[0] in OUTSIDE_SRC else head
        return root + new.replace(".", "/") + ending

    def line(found):
        return found if IMPORT.match(found) else SLASHED.sub(by_slashes, DOTTED.sub(by_dots, found))

    return "".join(map(line, text.splitlines(keepends=True)))


def main(prefixes):
    moves = Moves(prefixes)
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        path = Path(name)
        if path.suffix not in TEXTS or path.parts[0] in ("changes", "tools") or not path.exists() or path.is_symlink():
            continue
        before = path.read_text()
        after = mentioned(before, moves)
        if path.suffix == ".py" and path.parts[0] in TREES and concerns(before, moves, module_of(path)):
            after = rewritten(path, after, moves)
        if after != before:
            path.write_text(after)
    for old, new in moves.modules.items():
        found = file_of(old)
        if found is None:
            sys.exit(f"{old} has no file")
        target = place_of(new, is_package=found.name == "__init__.py")
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", found, target], check=True)
    for package in {place_of(new, is_package=False).parent for new in moves.modules.values()}:
        init = package / "__init__.py"
        if not init.exists():
            init.write_text('""""""\n')
            print("needs a sentence:", init)


def concerns(text, moves, own):
    return any(module.rpartition(".")[2] in text for module in moves.modules) or any(
        name in text for _, name in moves.names
    )


main(sys.argv[1:])
