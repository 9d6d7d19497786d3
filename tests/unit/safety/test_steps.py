"""Whether a step runs in a worker, by what its own processes are called; tried with a real shell."""

import shutil
import subprocess

import pytest

from slurm_operator.safety.steps import COMMAND, FOR_PEOPLE, saw_no_step


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


# With cgroup v2 it is there as long as slurmd, and is no step.
HELPER = ("slurmstepd", "/usr/sbin/slurmstepd", "infinity")


@pytest.mark.parametrize("shell", [one for one in ("sh", "bash", "dash") if shutil.which(one)])
@pytest.mark.parametrize(
    ("processes", "is_free"),
    [
        ([("slurmd", "slurmd", "-Z"), ("bash",)], True),
        ([("slurmd",), HELPER], True),
        ([("slurmd",), ("slurmstepd", "slurmstepd: [12.batch]")], False),
        ([("slurmd",), HELPER, ("slurmstepd", "slurmstepd: [12.extern]")], False),
        ([("slurmd",), ("slurmstepd: [1", "slurmstepd: [1.0]")], False),
        ([("slurmd",), ("slurmstepd", "/usr/sbin/slurmstepd")], False),  # It has not got its title yet.
        ([("slurmd",), ("slurmstepd", "slurmstepd: [12.batch] infinity")], False),
        ([("slurmd",), ("slurmstepd", "slurmstepd", "infinity", "more")], False),
        ([("slurmd",), ("slurmstepd",)], False),  # Its command line cannot be read.
        ([("slurmstepd", "slurmstepd: [12.batch]")], False),
        ([HELPER], False),
        ([("bash", "bash")], False),
    ],
)
def test_the_command_sees_steps_by_what_processes_are_called(tmp_path, processes, is_free, shell):
    for number, (name, *argv) in enumerate(processes):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "comm").write_text(f"{name}\n")
        if argv:
            (tmp_path / str(number) / "cmdline").write_bytes("\0".join([*argv, ""]).encode())
    (tmp_path / "99").mkdir()  # It has just ended.
    _, option, text = COMMAND
    command = [shell, option, text.replace("/proc", str(tmp_path))]
    assert saw_no_step(subprocess.run(command, capture_output=True, check=True).stdout) is is_free


@pytest.mark.parametrize(
    ("title", "is_step"),
    [
        ("slurmstepd: [12.batch]", True),
        ("/usr/sbin/slurmstepd\0infinity", False),
        ("slurmd\0-Z", False),
        ("sh\0-c\0" + FOR_PEOPLE, False),
    ],
)
def test_people_see_the_same_and_not_the_command_that_they_type(tmp_path, title, is_step):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_text(f"{title}\0")
    done = subprocess.run(
        ["sh", "-c", FOR_PEOPLE.replace("/proc", str(tmp_path))], capture_output=True, check=False
    )
    assert bool(done.stdout) is is_step
