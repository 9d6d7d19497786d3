"""The shell script by which a worker leaves whose image lacks our helper: run by a real shell, with commands that answer as told."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from slurm_operator.reconcilers.nodeset.pod import LEAVE

# Gives its first line and keeps the others; when only one is left, that stays.
ANSWER = """\
#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
lines=$ANSWERS/$(basename "$0")
head -n 1 "$lines"
[ "$(wc -l <"$lines")" -le 1 ] || sed -i 1d "$lines"
"""


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("squeue", "scontrol", "sleep"):
        (commands / name).write_text(ANSWER)
        (commands / name).chmod(stat.S_IRWXU)
    return tmp_path


def leave(bench: Path, *, squeue: list[str], scontrol: list[str]) -> list[str]:
    """The commands it gave, in their order."""
    for name, lines in {"squeue": squeue, "scontrol": scontrol, "sleep": [""]}.items():
        (bench / name).write_text("".join(f"{line}\n" for line in lines))
    calls = bench / "calls"
    environment = {
        "PATH": f"{bench / 'bin'}:{os.defpath}",
        "CALLS": str(calls),
        "ANSWERS": str(bench),
        "SLURMD_NODENAME": "gpu-0",
    }
    subprocess.run(["/bin/sh", "-c", LEAVE], env=environment, check=True, timeout=60, capture_output=True)
    return [line.split(" --")[0] for line in calls.read_text().splitlines()]


def test_an_idle_worker_drains_itself_and_leaves(bench):
    drain, *others = leave(bench, squeue=[""], scontrol=["State=IDLE+DRAIN"])

    assert drain.startswith("scontrol update nodename=gpu-0 state=drain reason=slurm-operator: ")
    assert others == ["squeue", "scontrol show node gpu-0"]


def test_a_worker_waits_for_its_job_and_then_for_the_epilog(bench):
    states = ["", "State=IDLE+COMPLETING+DRAIN", "State=IDLE+DRAIN"]

    calls = leave(bench, squeue=["7 gpu R", ""], scontrol=states)

    assert [call.split()[0] for call in calls[1:]] == [
        *("squeue", "sleep"),
        *("squeue", "scontrol", "sleep"),
        *("squeue", "scontrol"),
    ]
