"""The promise in one folder: nothing ends a running job. Pure functions."""
