"""Controller: slurmctld and everything that belongs to it."""
