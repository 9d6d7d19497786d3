"""Whether two objects mean the same, so that nothing is written without a difference."""
