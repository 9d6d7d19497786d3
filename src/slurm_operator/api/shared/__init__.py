"""Fields and names that several kinds share."""
