"""Of a hundred mutants that were made by a rule, five with each commit: whoever noticed them notices them still."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testing.mutation.chosen import AREAS, EACH, chosen
from testing.mutation.edits import mutants

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_five_mutants_are_noticed_by_whoever_noticed_them_before(request: pytest.FixtureRequest) -> None:
    turn = (request.config.getoption("--shard") or "0").partition("/")[0]
    paths = os.pathsep.join((str(ROOT / "tests"), str(ROOT)))
    argv = [sys.executable, "-m", "simulation.mutation", "--turn", turn]
    done = subprocess.run(
        argv, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Noticed by nobody: none." in done.stdout


def test_there_are_a_hundred_of_all_parts() -> None:
    drawn = chosen()

    assert len({one.name for one in drawn}) == len(drawn) == EACH * len(AREAS) == 100
    assert [one.area for one in drawn[:5]] == list(AREAS)


def test_a_mutant_keeps_its_name_when_other_lines_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "it.py"
    monkeypatch.setattr("testing.mutation.edits.ROOT", tmp_path)
    file.write_text("def f(a):\n    return a and not b\n")
    before = {(one.name, one.applied()) for one in mutants("gate", "it.py")}
    file.write_text("# Another line.\ndef f(a):\n    return a and not b\n")
    after = {(one.name, one.applied().partition("\n")[2]) for one in mutants("gate", "it.py")}

    assert before == after
    assert {text.splitlines()[1] for _, text in before} == {
        "    return (not b)",
        "    return (a)",
        "    return ((a) or (not b))",
        "    return a and bool(b)",
    }


@pytest.mark.parametrize(
    "line",
    [
        '"""What it gives back."""',
        'log.info("done", a=a)',
        "assert a == 1",
        'raise Error(f"{a and b} failed")',
    ],
)
def test_what_is_said_to_people_is_left_alone(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testing.mutation.edits.ROOT", tmp_path)
    (tmp_path / "it.py").write_text(f"def f(a):\n    {line}\n")

    assert mutants("gate", "it.py") == []
