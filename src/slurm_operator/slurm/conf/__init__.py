"""Slurm's configuration files: read, checked, merged, written, and what a change of them costs."""
