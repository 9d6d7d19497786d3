"""The first hour of a data scientist on a cluster of `up`: log in, submit, find the output, come back tomorrow."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_local import stop
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from slurm_local.start import Wanted
from slurm_operator import wire

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

NAME = f"e2e-hour-{os.getpid()}"
TOKEN = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "Token",
    "metadata": {"name": "demo-token", "namespace": "slurm"},
    "spec": {
        "controllerRef": {"name": "demo"},
        "username": "demo",
        "lifetime": "1h",
        "secretRef": {"name": "demo-token", "key": "SLURM_JWT"},
    },
}


def program(
    *args: str, check: bool = True, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slurm_operator.cli", *args]
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        env={**os.environ, **environment},
    )
    assert not check or done.returncode == 0, f"{args}\n{done.stdout}{done.stderr}"
    return done


def shell(*command: str) -> str:
    return program("local", "shell", "--name", NAME, *command).stdout


def kubectl(*words: str, check: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return program("local", "kubectl", "--name", NAME, *words, check=check, stdin=stdin)


@pytest.fixture(scope="module")
def up(wanted: Wanted, paths: Paths) -> Iterator[Path]:
    """The directory of a cluster that was started as a newcomer does."""
    try:
        program("up", "--name", NAME)
        yield paths.cluster(NAME)
    finally:
        stop.down(NAME, paths, Quiet())


def test_ssh_leads_to_the_home_that_jobs_write_to(up: Path) -> None:
    config = str(up / "ssh" / "config")
    script = "sbatch --wait --wrap 'hostname; pwd' > /dev/null; cat slurm-*.out; id -u"

    said = subprocess.run(
        ["ssh", "-F", config, "demo", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.stdout.split()[1:] == ["/home/demo", "1000"], said.stderr
    assert said.stdout.startswith("demo-cpu-")


def test_an_array_several_nodes_and_python_leave_their_output_at_home(up: Path) -> None:
    shell(
        "sbatch",
        "--wait",
        "--array=1-3",
        "--output=square-%a.txt",
        "--wrap",
        "echo $((SLURM_ARRAY_TASK_ID * SLURM_ARRAY_TASK_ID))",
    )
    shell("sbatch", "--wait", "--nodes=2", "--output=nodes.txt", "--wrap", "srun hostname")
    shell("sbatch", "--wait", "--output=py.txt", "--wrap", "python3 -c 'print(6 * 7)'")

    assert shell("cat", "square-1.txt", "square-2.txt", "square-3.txt").split() == ["1", "4", "9"]
    assert shell("sort", "nodes.txt").split() == ["demo-cpu-0", "demo-cpu-1"]
    assert shell("cat", "py.txt") == "42\n"


def test_small_jobs_run_side_by_side_and_are_remembered(up: Path) -> None:
    """Two on one node: the first did not take all of its memory."""
    one = shell("sbatch", "--parsable", "--nodelist=demo-cpu-0", "--wrap", "sleep 300").strip()
    held = shell("scontrol", "show", "job", one)
    shell("srun", "--nodelist=demo-cpu-0", "--overlap", "--mem=10", "--immediate=60", "true")
    shell("scancel", one)

    assert "TimeLimit=01:00:00" in held
    assert "mem=1G" in held or "mem=1024M" in held
    history = shell("sacct", "--noheader", "--allocations", "--parsable2", "--format=User,State").splitlines()
    assert "demo|COMPLETED" in history


def test_the_plugin_submits_shows_and_cancels_as_the_user_that_it_names(up: Path, tmp_path: Path) -> None:
    script = tmp_path / "long.sh"
    script.write_text("#!/bin/sh\n#SBATCH --time=5\nsleep 300\n")

    sent = kubectl("slurm", "submit", "--user", "demo", str(script))
    number = sent.stdout.split()[-1]
    shown = kubectl("slurm", "jobs", "--user", "demo")
    kubectl("slurm", "cancel", "--user", "demo", number)

    assert sent.stderr.startswith("As demo in login pod slurm/demo-login-")
    assert [number, "long.sh", "demo"] in [line.split()[:3] for line in shown.stdout.splitlines()]
    assert "CANCELLED" in shell("sacct", "--noheader", "--allocations", "--jobs", number, "--format=State%20")


def test_the_user_of_a_token_submits_without_any_login(up: Path, tmp_path: Path) -> None:
    kubectl("apply", "-f", "-", stdin=wire.encode(TOKEN).decode())
    kubectl("wait", "--for=create", "secret/demo-token", "--timeout=60s")
    script = tmp_path / "rest.sh"
    script.write_text("#!/bin/sh\n#SBATCH --job-name=byrest -o byrest.txt\nwhoami; pwd\n")

    sent = kubectl("slurm", "submit", "--token-secret", "demo-token", str(script))
    number = sent.stdout.split()[-1]
    shell("srun", f"--dependency=afterany:{number}", "true")

    assert sent.stderr.splitlines()[0] == "As demo, with the token in Secret demo-token."
    assert shell("cat", "byrest.txt").split() == ["demo", "/home/demo"]
    refused = kubectl("slurm", "cancel", "--token-secret", "demo-token", "99999", check=False)
    assert refused.returncode == 1
    assert "Job 99999 is not cancelled" in refused.stderr


def test_real_ssh_goes_through_kubernetes(up: Path) -> None:
    said = kubectl(
        "slurm", "ssh", "--user", "demo", "-i", str(up / "ssh" / "id_ed25519"), "--", "id -un; hostname"
    )

    assert said.stdout.split()[0] == "demo"
    assert said.stdout.split()[1].startswith("demo-login-")


def test_another_user_of_the_machine_is_told_and_ends_nothing(up: Path, tmp_path: Path) -> None:
    theirs = str(tmp_path / "state")

    refused = program("up", "--name", NAME, check=False, SLURM_OPERATOR_HOME=theirs)

    assert refused.returncode == 1
    assert f"with its files in {up.parents[1]}" in refused.stderr
    program("down", "--name", NAME, SLURM_OPERATOR_HOME=theirs)
    assert "idle" in shell("sinfo", "--noheader", "--format=%T")


def test_a_home_is_kept_for_the_next_cluster_and_deleted_when_nobody_keeps_it(up: Path, paths: Paths) -> None:
    shell("sh", "-c", "echo 42 > results.txt")

    kept = program("down", "--name", NAME, "--keep-home").stderr
    assert f"/home is kept in {paths.home_of(NAME)}" in kept
    program("up", "--name", NAME)
    assert shell("cat", "results.txt") == "42\n"

    assert "Deleting /home" in program("down", "--name", NAME).stderr
    assert not paths.home_of(NAME).exists()
