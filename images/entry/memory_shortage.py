"""Whom the kernel ends when memory is short: a job, and not the slurmd under which all jobs of a worker live.

A kubelet gives every process of a container the same adjustment, which makes those of pods that ask for less
than they may use end first. Slurm sets it back to 0 for jobs, and to -999 for their slurmstepd. That leaves
slurmd and what started it as the first choice, and with them go the container and every job in it: seen with
kubelet 1.36, in tests/e2e/test_cgroups.py.
"""

import contextlib
import os
from pathlib import Path

SPARED = "-999"  # What Slurm gives slurmstepd, and kubelets give the container that holds a pod.

_INIT = "tini"


def spare_slurmd(processes: Path = Path("/proc")) -> None:
    """Spares this process, what it starts from now on, and the init of the container.

    It takes a right that only a privileged container has. Without it nothing changes.
    """
    parent = processes / str(os.getppid())
    with contextlib.suppress(OSError):
        (processes / str(os.getpid()) / "oom_score_adj").write_text(SPARED)
        # Any other parent is none of ours, such as the init of a node whose processes the pod sees.
        if (parent / "comm").read_text().strip() == _INIT:
            (parent / "oom_score_adj").write_text(SPARED)
