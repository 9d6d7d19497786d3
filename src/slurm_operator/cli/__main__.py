"""`python -m slurm_operator.cli` is `slurm-operator`."""

from slurm_operator.cli.root import main

main()
