"""`slurm-operator …` and `kubectl slurm …`: one program, one subcommand per job."""

from slurm_operator.cli.root import kubectl_slurm, main

__all__ = ["kubectl_slurm", "main"]
