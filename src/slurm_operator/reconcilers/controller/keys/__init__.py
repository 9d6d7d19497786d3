"""The keys of a Slurm cluster: copies, rotation, who uses them."""
