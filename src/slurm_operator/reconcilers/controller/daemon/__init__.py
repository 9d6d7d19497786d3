"""slurmctld in Kubernetes: its pods, Services and StatefulSet."""
