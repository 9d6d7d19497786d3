"""What SlurmCluster and its NodeSet share: labels, pods, files, and the state of the shared root."""
