"""python -m testing.architecture: draw the import contracts of pyproject.toml into docs/concepts/architecture.md.

Layers stand on top of each other, and a box may import what is below it. A wall between two boxes of a layer says
that neither imports the other; modules that share a box may.
"""

import tomllib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from testing.named_paths import ROOT

PAGE = ROOT / "docs" / "concepts" / "architecture.md"
BEGIN, END = "<!-- picture -->", "<!-- end of picture -->"
WIDTH = 78  # Or what the widest layer of a contract needs.
BETWEEN = "▼ may import what is below, never the other way round ▼"
PACKAGE = "slurm_operator"

Row = Sequence[str]  # The boxes of one layer, from left to right.
Contract = dict[str, Any]


class Stack(NamedTuple):
    """The layers of one contract, the highest first, and the package whose modules they are."""

    title: str
    within: str
    rows: Sequence[Row]
    modules: frozenset[str]


def contracts() -> list[Contract]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[Contract] = settings["tool"]["importlinter"]["contracts"]
    return found


def picture(agreed: Sequence[Contract]) -> str:
    """Every contract about layers or independence. Where one stack may not import another, that one is above it."""
    return "\n".join(line for part in _parts(agreed) for line in part)


def _parts(agreed: Sequence[Contract]) -> Iterator[list[str]]:
    left = [stack for contract in agreed if (stack := _stack(contract)) is not None]
    is_first = True
    while left:
        lowest = left.pop(0)
        above = next((stack for stack in left if _is_kept_from(lowest, stack, agreed)), None)
        if not is_first:
            yield [""]
        is_first = False
        if above is not None:
            left.remove(above)
            yield _drawn(above)
            yield [f"{BETWEEN:^{WIDTH}}".rstrip()]
        yield _drawn(lowest)


def _stack(contract: Contract) -> Stack | None:
    match contract:
        case {"type": "layers", "name": name, "layers": layers}:
            rows = [[box.strip() for box in layer.split("|")] for layer in layers]
        case {"type": "independence", "name": name, "modules": modules}:
            rows = [list(modules)]
        case _:
            return None
    modules = frozenset(module.strip() for row in rows for box in row for module in box.split(":"))
    return Stack(name, _package_of(modules), rows, modules)


def _package_of(modules: frozenset[str]) -> str:
    parents = {module.rpartition(".")[0] for module in modules}
    assert len(parents) == 1, f"layers of several packages cannot be drawn: {sorted(parents)}"
    return parents.pop()


def _is_kept_from(lower: Stack, upper: Stack, agreed: Sequence[Contract]) -> bool:
    return any(
        lower.modules <= set(contract["source_modules"])
        and upper.modules <= set(contract["forbidden_modules"])
        for contract in agreed
        if contract["type"] == "forbidden"
    )


def _drawn(stack: Stack) -> list[str]:
    title = stack.title if stack.within == PACKAGE else f"{stack.title} (inside {stack.within})"
    cells = [[_label(box, stack.within) for box in row] for row in stack.rows]
    width = max(WIDTH, *(_needed(row) for row in cells))
    walls = [_walls(row, width) for row in cells]
    lines = [title, _border("┌┐", set(), walls[0], width)]
    for number, row in enumerate(cells):
        if number:
            lines.append(_border("├┤", walls[number - 1], walls[number], width))
        lines.append(_boxes(row, walls[number], width))
    return [*lines, _border("└┘", walls[-1], set(), width)]


def _label(box: str, within: str) -> str:
    return ", ".join(module.strip().removeprefix(f"{within}.") for module in box.split(":"))


def _needed(row: Row) -> int:
    """A blank on each side of a name, and walls."""
    return sum(len(label) + 3 for label in row) + 1


def _walls(row: Row, width: int) -> set[int]:
    """The columns between two boxes. What the names do not need is shared out evenly."""
    each, more = divmod(width - _needed(row), len(row))
    walls, column = set(), 0
    for number, label in enumerate(row[:-1]):
        column += len(label) + 3 + each + (number < more)
        walls.add(column)
    return walls


def _boxes(row: Row, walls: set[int], width: int) -> str:
    edges = [0, *sorted(walls), width - 1]
    inner = [right - left - 1 for left, right in pairwise(edges)]
    return "│" + "│".join(label.center(size) for label, size in zip(row, inner, strict=True)) + "│"


def _border(corners: str, above: set[int], below: set[int], width: int) -> str:
    marks = {(True, True): "┼", (True, False): "┴", (False, True): "┬", (False, False): "─"}
    middle = (marks[column in above, column in below] for column in range(1, width - 1))
    return corners[0] + "".join(middle) + corners[1]


def block(agreed: Sequence[Contract]) -> str:
    """As it stands in the page."""
    return f"{BEGIN}\n```\n{picture(agreed)}\n```\n{END}"


def redrawn(page: str, agreed: Sequence[Contract]) -> str:
    """The page with the picture of these contracts."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{block(agreed)}{after}"


if __name__ == "__main__":
    PAGE.write_text(redrawn(PAGE.read_text(), contracts()))
