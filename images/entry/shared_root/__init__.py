"""The root directory that all nodes share: filled by a Job, tried by each worker before its slurmd starts.

Users who are root inside it own all of it and may swap a directory for a link at any moment. So nothing here
follows a link: each path is walked from the root's descriptor, one directory at a time.
"""
