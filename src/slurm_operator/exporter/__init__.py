"""One Slurm cluster as metrics: read in the background, made into a table, shown to Prometheus."""
