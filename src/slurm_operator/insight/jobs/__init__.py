"""Jobs as rows, and batch scripts as slurmrestd takes them."""
