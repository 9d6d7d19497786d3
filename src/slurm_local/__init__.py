"""A real Kubernetes and Slurm on this machine: build, start, stop. Knows no reconciler."""
