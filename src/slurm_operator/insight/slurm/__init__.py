"""One Slurm cluster from outside: its address and token, the proxy, nodes that take no jobs."""
