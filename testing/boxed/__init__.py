"""Slurm daemons in boxes: namespaces made by hand, for tests that need no Kubernetes."""
