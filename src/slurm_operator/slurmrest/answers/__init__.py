"""The answers of slurmrestd, any version, as types of slurm/."""
