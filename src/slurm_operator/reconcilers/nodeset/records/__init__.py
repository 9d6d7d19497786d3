"""What Slurm knows of a worker: its record, attributes and comment."""
