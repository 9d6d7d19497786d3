"""The Kubernetes API: client, watch caches, server-side apply, events, lease. Knows no Slurm."""
