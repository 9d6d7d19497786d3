"""Slurm's files: rendered, tested, delivered, put back when refused."""
