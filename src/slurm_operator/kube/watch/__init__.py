"""Live copies of what the API server has: list, watch, caches, indexes."""
