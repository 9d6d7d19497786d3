"""A support archive without secrets."""
