"""Scripts that Soperator's charts bring: what needs no Slurm is run for real, the rest with stand-ins for its commands."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from images.entry.passive_checks import checks_from
from slurm_operator import wire
from testing.chart_schema import CHARTS

CHECKS = CHARTS / "soperator" / "soperator-activechecks" / "files" / "scripts"
OF_WORKERS = CHARTS / "soperator" / "slurm-cluster" / "files" / "scripts"
HOURS = 3600


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A directory that comes first on PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    return place


def stand_in(tools: Path, name: str, said: str, code: int = 0) -> None:
    program = tools / name
    program.write_text(f"#!/bin/sh\ncat <<'SAID'\n{said}\nSAID\nexit {code}\n")
    program.chmod(0o755)


def run(script: Path, tools: Path, **environment: str) -> "tuple[int, str]":
    """Exit code, and what it printed; file descriptor 3 is where passive checks write details."""
    path = f"{tools}:{os.environ['PATH']}"
    command = f'exec 3>&1; exec {"python3" if script.suffix == ".py" else "bash"} "$0"'
    done = subprocess.run(
        ["bash", "-c", command, script], env={"PATH": path, **environment}, capture_output=True, text=True, check=False
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "script", sorted([*CHECKS.glob("*.sh"), *OF_WORKERS.glob("*.sh")]), ids=lambda path: path.name
)
def test_a_shell_can_read_it(script):
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def test_directories_of_profiles_without_files_are_removed_after_three_hours(tmp_path, tools):
    def directory(job: str, hours: float, *files: str) -> None:
        place = tmp_path / "profiles" / job / "0"
        place.mkdir(parents=True)
        for name in files:
            (place / name).write_text("")
        for one in (*place.iterdir(), place, place.parent):
            os.utime(one, (one.stat().st_atime - hours * HOURS, one.stat().st_mtime - hours * HOURS))

    directory("old and empty", 4)
    directory("old with a file", 4, "profile")
    directory("new and empty", 2)
    profiles = tmp_path / "profiles"

    code, _ = run(CHECKS / "nccl-profiles-cleaner.sh", tools, PROFILES=str(profiles))

    assert code == 0
    assert {one.name for one in profiles.iterdir()} == {"old with a file", "new and empty"}
    assert run(CHECKS / "nccl-profiles-cleaner.sh", tools, PROFILES=str(tmp_path / "none"))[0] == 0


@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        pytest.param("w-0 idle none\nw-1 mixed none", 0, id="healthy"),
        pytest.param("w-0 idle~ none", 0, id="powered down"),
        pytest.param("w-0 idle none\nw-1 drained seen by root", 1, id="drained"),
        pytest.param("w-0 down* none", 1, id="down"),
        pytest.param("w-0 idle bad disk", 1, id="a reason"),
        pytest.param("", 1, id="no nodes"),
    ],
)
def test_nodes_are_healthy_when_none_is_down_or_has_a_reason(tools, nodes, code):
    stand_in(tools, "sinfo", nodes)

    assert run(CHECKS / "ensure-healthy-nodes.sh", tools)[0] == code


def test_nodes_are_not_healthy_when_nobody_can_tell(tools):
    stand_in(tools, "sinfo", "w-0 idle none", code=1)

    assert run(CHECKS / "ensure-healthy-nodes.sh", tools)[0] == 1


@pytest.mark.parametrize(
    ("status", "code"), [("PASS", 0), ("FAIL", 1), ("ERROR", 0)], ids=["passed", "failed", "could not tell"]
)
@pytest.mark.parametrize(
    ("gpus", "tag"),
    [
        ("NVIDIA H100 80GB HBM3\n" * 8, "8xH100"),
        ("NVIDIA GB300\n" * 4, "4xGB300"),
        ("NVIDIA H100\nNVIDIA H200\n", "2xGPU"),
    ],
)
def test_only_what_the_health_checker_calls_fail_fails(tools, status, code, gpus, tag):
    stand_in(tools, "nvidia-smi", gpus.strip())
    stand_in(tools, "health-checker", f'first line\n{{"status": "{status}"}}')

    found = run(CHECKS / "gpu-checks.sh", tools)

    assert found == (code, f'{tag}: {status}: {{"status": "{status}"}}\n')


def test_the_list_of_checks_is_one_that_our_runner_reads():
    listed = yaml.safe_load((OF_WORKERS.parent / "checks.yaml").read_text())
    found = checks_from(wire.pretty(list(listed.values())))

    assert len(found) == len(listed) == 15
    assert {one.name for one in found if one.on_fail == "drain"} == {
        "alloc_gpus_busy", "boot_disk_full", "idle_mem_used", "nvme_raid_health",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("jobs", "real_memory", "drains", "lifts"),
    [
        pytest.param('{"jobs": []}', 1 << 20, False, True, id="enough is free"),
        pytest.param('{"jobs": []}', 1 << 60, True, False, id="less is free"),
        pytest.param('{"jobs": [7]}', 1 << 60, False, False, id="a job runs"),
        pytest.param("slurmd does not answer", 1 << 20, False, False, id="nobody can tell"),
    ],
)
def test_memory_of_a_worker_without_jobs(tools, tmp_path, jobs, real_memory, drains, lifts):
    stand_in(tools, "scontrol", jobs)
    lifting = tmp_path / "idle_mem_used.undrain.py"
    lifting.write_text((OF_WORKERS / "idle_mem_used.drain.py").read_text())
    memory = {"CHECKS_NODE_REAL_MEM_BYTES": str(real_memory)}

    assert (run(OF_WORKERS / "idle_mem_used.drain.py", tools, **memory)[0] != 0) == drains
    assert (run(lifting, tools, **memory)[0] == 0) == lifts


def test_gpus_in_use_by_somebody_else_stop_a_job(tools):
    stand_in(tools, "nvidia-smi", "4711, python")
    code, said = run(OF_WORKERS / "alloc_gpus_busy.drain.sh", tools, SLURM_JOB_GPUS="0,1")
    assert (code, said) == (1, "processes on GPUs 0,1: 4711, python;\n")

    stand_in(tools, "nvidia-smi", "")
    assert run(OF_WORKERS / "alloc_gpus_busy.undrain.sh", tools)[0] == 0


@pytest.mark.parametrize("context", ["prolog", "epilog", "hc_program"])
def test_a_worker_without_a_runner_starts_jobs(tmp_path, tools, context):
    alone = tmp_path / f"{context}.sh"
    alone.write_text((OF_WORKERS / f"{context}.sh").read_text())

    assert run(alone, tools)[0] == 0
