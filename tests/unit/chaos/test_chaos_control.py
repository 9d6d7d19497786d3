"""What operators run first: chaos/gateless.py has them remove workers under jobs, chaos/no_grace.py at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# Scaled to nothing, while a job runs on the one worker.
STORY = """
from testing.workers import controller, job, nodeset, slurm, slurm_node, told, worker, world

pod = worker(0)
busy = slurm(slurm_node(pod, "MIXED"), jobs=[job(7, "gpu-0")])
print("; ".join(told(world(nodeset(replicas=0), controller(), pod, slurm_=busy))))
"""


@pytest.mark.parametrize(
    ("is_patched", "expected", "unexpected"),
    [
        pytest.param(False, "drain gpu-0 for ScaleIn", "delete gpu-0", id="the whole operator drains it"),
        pytest.param(True, "delete gpu-0 (Drained)", "forget", id="without the gate it is deleted at once"),
    ],
)
def test_without_its_gate_the_operator_deletes_a_worker_with_a_job(
    is_patched, expected, unexpected, tmp_path
):
    patches = ["gateless.py", "no_grace.py"] if is_patched else ["no_grace.py"]

    told = played(STORY, patches, tmp_path)

    assert expected in told
    assert unexpected not in told


# Scaled to nothing, and no job runs.
IDLE = """
from slurm_operator.plan.actions import DeleteWorker
from testing.workers import controller, nodeset, ours, planned, slurm, slurm_node, worker, world

pod = worker(0)
idle = slurm(slurm_node(pod, "IDLE", "DRAIN", reason=ours(pod, "ScaleIn")))
actions = planned(world(nodeset(replicas=0), controller(), pod, slurm_=idle)).actions()
print([action.grace_seconds for action in actions if isinstance(action, DeleteWorker)])
"""


def test_the_operator_of_a_run_leaves_a_worker_that_it_removes_no_time(tmp_path):
    assert played(IDLE, [], tmp_path) == "[30]\n"
    assert played(IDLE, ["no_grace.py"], tmp_path) == "[1]\n"


def played(story: str, patches: list[str], directory: Path) -> str:
    """What a program prints that begins as the operator of a run does."""
    words = "\n\n".join((ROOT / "chaos" / name).read_text() for name in patches)
    (directory / "sitecustomize.py").write_text(words)
    paths = os.pathsep.join(map(str, (directory, ROOT / "tests", ROOT / "src")))
    done = subprocess.run(
        [sys.executable, "-c", story],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
