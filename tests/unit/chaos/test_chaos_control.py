"""The control: an operator that runs chaos/gateless.py first removes workers under their jobs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# Scaled to nothing, while a job runs on the one worker.
STORY = """
from support.workers import controller, job, nodeset, slurm, slurm_node, told, worker, world

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
    if is_patched:
        shutil.copy(ROOT / "chaos" / "gateless.py", tmp_path / "sitecustomize.py")
    paths = os.pathsep.join(map(str, (tmp_path, ROOT / "tests", ROOT / "src")))

    done = subprocess.run(
        [sys.executable, "-c", STORY],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )

    assert expected in done.stdout
    assert unexpected not in done.stdout
