"""slurmrestd over HTTP; every API version becomes slurm/ types here. Knows no Kubernetes."""
