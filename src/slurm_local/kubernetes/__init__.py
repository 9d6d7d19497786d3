"""Kubernetes' own components on this machine: their commands, files and certificates."""
