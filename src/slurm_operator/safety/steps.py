"""Whether a job step runs in a worker, by its own processes: of one that Slurm forgot nobody else can tell.

Every step has a slurmstepd, which outlives slurmd and its restarts, and ends with the step's last process.
With cgroup v2 one more lives as long as slurmd and is no step: it is called with the word "infinity".
"""

from typing import Final

# Standard shell and /proc alone: other images have no ps. A shell reads the words of a command line without
# a gap between them. A slurmstepd of which nothing else can be read counts as a step.
COMMAND: Final = (
    "sh",
    "-c",
    "for one in /proc/[0-9]*; do read -r name <$one/comm || continue; "
    "case $name in slurmd) echo slurmd;; slurmstepd*) line=; read -r line <$one/cmdline; "
    "case $line in *slurmstepdinfinity) ;; *) echo step;; esac;; esac; done 2>/dev/null; echo looked",
)

# For people: prints the files of steps, by the titles that they have, and nothing where there is none.
FOR_PEOPLE: Final = r'grep -la "slurmstepd: \[" /proc/[0-9]*/cmdline'


def saw_no_step(output: bytes) -> bool:
    """Whether what the command printed says so. Without slurmd among the processes it looked elsewhere."""
    words = output.decode(errors="replace").split()
    return words[-1:] == ["looked"] and "slurmd" in words and "step" not in words
