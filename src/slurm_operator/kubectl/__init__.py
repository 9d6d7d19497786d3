"""`kubectl slurm`: the operator's own eyes and its own judgement, for people. Writes nothing by itself."""
