"""A world for the whole operator to live in: an API server, machines, slurmctld and people, in memory.

The operator in it is the real one: its watches, queues, reconcilers, lanes and Slurm connections. Only what lies
beyond HTTP is played, and time: a minute passes in milliseconds, and one seed always gives the same story.
"""
