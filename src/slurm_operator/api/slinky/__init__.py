"""The kinds of slinky.slurm.net."""
