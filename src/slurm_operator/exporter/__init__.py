"""A Slurm snapshot to a table of metrics to /metrics. Writes nothing."""
