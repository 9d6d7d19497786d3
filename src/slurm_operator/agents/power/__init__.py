"""power-manager: carries the wishes of Slurm's power saving to the API server."""
