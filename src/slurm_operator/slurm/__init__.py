"""Slurm's own language: node states, hostlists, TRES, config files. Knows no Kubernetes."""
