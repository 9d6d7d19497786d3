"""One Slurm cluster on one screen, as data."""
