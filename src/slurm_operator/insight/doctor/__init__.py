"""Whether a Kubernetes cluster fits, with a remedy for each finding."""
