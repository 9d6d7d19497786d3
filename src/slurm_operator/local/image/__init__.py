"""The container images of the local cluster, made of distribution packages and without a container engine."""
