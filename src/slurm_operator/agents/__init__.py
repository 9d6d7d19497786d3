"""Processes inside the pods of a Slurm cluster, each with its own small task."""
