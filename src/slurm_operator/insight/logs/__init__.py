"""Logs of Slurm's daemons: which ones, read in order, and the last lines of a crashed container."""
