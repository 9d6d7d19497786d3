"""`slurm-operator …` and `kubectl slurm …`: one program, one subcommand per job."""

from slurm_operator.cli.kubectl import kubectl_slurm
from slurm_operator.cli.root import main

__all__ = ["kubectl_slurm", "main"]
