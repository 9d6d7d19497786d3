"""Slurm's jobs: running and waiting ones, their details, why they wait, how they ended."""
