"""Kubernetes objects as plain data: the parts we read, builders, merging, digests. Knows no client."""
