"""Faults on a real cluster while jobs run, and a count of the jobs that were lost.

A run: jobs start and write down their own lives; somebody wishes for something that takes workers away, and
things break around it; jobs are still submitted; what was broken is repaired; the cluster settles; then every
ledger is read. A job is lost when it did not start exactly once and run to its end. Only jobs on a machine
whose plug was pulled, or in a worker whose slurmd was killed, are excused. The seed decides all but timing.
"""
