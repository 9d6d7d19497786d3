"""Runs Slurm clusters on Kubernetes, and never ends a running job."""

from importlib.metadata import version

__version__ = version("slurm-operator")
