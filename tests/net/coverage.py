"""python -m net.coverage [FIRST END]: which actions and reasons of the operator never appear in the made-up worlds."""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import slurm_operator
from net import golden, worlds
from net.ledger import Ledger
from slurm_operator.plan.actions import Action
from slurm_operator.plan.plan import Plan
from slurm_operator.plan.reconciler import StatusReport

SOURCE = Path(slurm_operator.__file__).parent
CORE = ("reconcilers", "plan", "safety")
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]*)*")
# Functions that take the reason as their second argument.
TAKE_REASON = ("true", "false", "unknown", "wait", "marked")


class Counted(Ledger):
    """Counts what appears, in place of digests."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.by: Counter[str] = Counter()

    def note(self, who: str, plan: Plan, report: StatusReport | None) -> None:
        self.by[who.split(maxsplit=1)[0]] += 1
        for action in plan.actions():
            self.found.update((type(action).__name__, getattr(action, "reason", "")))
        if report is not None:
            self.found.update(condition.reason for condition in report.conditions)


def reasons() -> set[str]:
    """Every word that the core gives as a reason."""
    files = (file for part in CORE for file in (SOURCE / part).rglob("*.py"))
    return {word for file in files for word in _reasons(ast.parse(file.read_text()))}


def _reasons(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given: list[Any] = [word.value for word in node.keywords if word.arg == "reason"]
            if isinstance(node.func, ast.Name) and node.func.id in TAKE_REASON:
                given += node.args[1:2]
            for value in given:
                yield from _words(value)


def _words(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and WORD.fullmatch(one.value):
            yield one.value


def main() -> None:
    counted = Counted()
    first, end = map(int, sys.argv[1:3] or (0, golden.WORLDS))
    for number in range(first, end):
        worlds.lived(number, counted)
    print("passes:", dict(sorted(counted.by.items())))
    for what, known in (
        ("actions", {one.__name__ for one in get_args(Action)}),
        ("reasons", reasons()),
    ):
        missing = sorted(known - counted.found.keys())
        print(f"{what}: {len(known) - len(missing)} of {len(known)}; never: {', '.join(missing)}")


if __name__ == "__main__":
    main()
