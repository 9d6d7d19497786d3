"""Whether a step runs in a worker, by what its own processes are called; tried with a real shell."""

import subprocess

import pytest

from slurm_operator.safety.steps import COMMAND, saw_no_step


@pytest.mark.parametrize(
    ("printed", "is_free"),
    [
        pytest.param(b"slurmd\nlooked\n", True, id="slurmd alone"),
        pytest.param(b"slurmd\nslurmd\nlooked\n", True, id="slurmd twice"),
        pytest.param(b"step\nslurmd\nlooked\n", False, id="a step"),
        pytest.param(b"slurmd\nstep\nstep\nlooked\n", False, id="steps"),
        pytest.param(b"looked\n", False, id="no slurmd: it looked elsewhere"),
        pytest.param(b"slurmd\n", False, id="cut off"),
        pytest.param(b"", False, id="nothing"),
        pytest.param(b"\xff\xfe", False, id="noise"),
    ],
)
def test_only_a_whole_look_that_saw_slurmd_and_no_step_counts(printed, is_free):
    assert saw_no_step(printed) is is_free


@pytest.mark.parametrize(
    ("names", "is_free"),
    [
        (["slurmd", "bash"], True),
        (["slurmd", "slurmstepd"], False),
        (["slurmd", "slurmstepd: [1"], False),
        (["slurmstepd"], False),
        (["bash"], False),
    ],
)
def test_the_command_sees_processes_by_their_names(tmp_path, names, is_free):
    for number, name in enumerate(names):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "comm").write_text(f"{name}\n")
    (tmp_path / "99").mkdir()  # It has just ended.
    shell, option, text = COMMAND
    command = [shell, option, text.replace("/proc", str(tmp_path))]
    assert saw_no_step(subprocess.run(command, capture_output=True, check=True).stdout) is is_free
