"""Completion, as shells and kubectl ask for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from slurm_operator.cli.kubectl import kubectl_slurm

PROGRAM = "from slurm_operator.cli import kubectl_slurm; kubectl_slurm(prog_name='kubectl-slurm')"


def printed(shell: str) -> str:
    result = CliRunner().invoke(kubectl_slurm, ["completion", shell])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_told_to_ask_the_program(shell):
    text = printed(shell)

    assert "kubectl-slurm" in text
    assert f"_KUBECTL_SLURM_COMPLETE={shell}_complete" in text


def test_bash_can_read_what_is_printed_for_it():
    bash = shutil.which("bash")
    assert bash is not None

    checked = subprocess.run([bash, "-n"], input=printed("bash"), text=True, capture_output=True, check=False)

    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.fixture
def helper(tmp_path: Path) -> Path:
    """The helper in a directory of its own, beside the program it calls."""
    (tmp_path / "kubectl-slurm").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{PROGRAM}" "$@"\n')
    (tmp_path / "kubectl_complete-slurm").write_text(printed("kubectl"))
    for name in ("kubectl-slurm", "kubectl_complete-slurm"):
        (tmp_path / name).chmod(0o755)
    return tmp_path / "kubectl_complete-slurm"


def proposed(helper: Path, *words: str) -> list[str]:
    environ = {**os.environ, "PATH": f"{helper.parent}:{os.environ['PATH']}"}
    done = subprocess.run([helper, *words], env=environ, text=True, capture_output=True, check=True)
    return done.stdout.splitlines()


def test_kubectl_is_given_proposals_and_told_to_offer_no_files(helper):
    assert proposed(helper, "dr") == ["drain", ":4"]
    assert proposed(helper, "completion", "") == ["bash", "zsh", "fish", "kubectl", ":4"]
    assert "--namespace" in proposed(helper, "status", "--n")
