"""Writes configuration into the shared root of a Slurm cluster, and has Slurm read it."""
