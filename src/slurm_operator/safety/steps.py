"""Whether a job step runs in a worker, by its own processes: of one that Slurm forgot nobody else can tell.

Every step has a slurmstepd, which outlives slurmd and its restarts, and ends with the step's last process.
"""

from typing import Final

# Standard shell and /proc alone: other people's images have no ps.
COMMAND: Final = (
    "sh",
    "-c",
    "for one in /proc/[0-9]*/comm; do read -r name <$one || continue; "
    "case $name in slurmstepd*) echo step;; slurmd) echo slurmd;; esac; done 2>/dev/null; echo looked",
)

# For people: prints the files of such processes, and nothing where there is none.
FOR_PEOPLE: Final = "grep -l slurmstepd /proc/[0-9]*/comm"


def saw_no_step(output: bytes) -> bool:
    """Whether what the command printed says so. Without slurmd among the processes it looked elsewhere."""
    words = output.decode(errors="replace").split()
    return words[-1:] == ["looked"] and "slurmd" in words and "step" not in words
