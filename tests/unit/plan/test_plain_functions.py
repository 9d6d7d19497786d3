"""The core is made of plain functions: nothing in it awaits, so nothing in it can reach a network."""

import ast

import pytest

from testing.named_paths import SOURCE

CORE = ("api", "slurm", "manifests", "safety", "plan", "reconcilers")
AWAITS = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


def awaiting(source: str) -> list[int]:
    """The lines that await something."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, AWAITS)]


@pytest.mark.parametrize("part", CORE)
def test_nothing_in_the_core_awaits(part: str):
    files = sorted((SOURCE / part).rglob("*.py"))

    assert len(files) > 2
    assert {str(file): lines for file in files if (lines := awaiting(file.read_text()))} == {}


def test_an_await_would_be_noticed():
    assert awaiting("async def decide(seen):\n    await seen\n") == [1, 2]
