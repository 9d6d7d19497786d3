"""Which workers have to leave, and why."""
