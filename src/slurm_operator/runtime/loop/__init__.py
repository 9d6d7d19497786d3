"""What wakes reconcilers, and one pass over one object."""
