"""Take out any one condition of the transport, and its unit tests notice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.transport_mutants import MUTANTS

ROOT = Path(__file__).parents[2]


def outcome(mutant: str, tests: list[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}", "TRANSPORT_MUTANT": mutant}
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "simulation.transport_mutants",
    ]
    argv += ["-p", "no:xdist", "--timeout", "20", "--rights", os.devnull]
    return subprocess.run([*argv, *tests], cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_without_a_mutation_all_is_well() -> None:
    done = outcome("", sorted({mutant.notices for mutant in MUTANTS.values()}))

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", MUTANTS)
def test_one_condition_less_is_noticed(name: str) -> None:
    done = outcome(name, [MUTANTS[name].notices])

    assert done.returncode == 1, f"nobody noticed: {done.stdout}{done.stderr}"
    assert "\nFAILED " in done.stdout, done.stdout
