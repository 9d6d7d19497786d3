"""One Slurm cluster kept in memory and written to."""
