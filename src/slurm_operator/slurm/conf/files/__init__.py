"""What may stand in each configuration file of Slurm 26.05."""
