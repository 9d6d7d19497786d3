"""The second API group: a Slurm cluster around one shared root, translated into parts of the engine."""
