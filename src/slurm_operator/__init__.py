"""Runs Slurm clusters on Kubernetes, and never ends a running job."""

__version__ = "0.1.0"
