#!/usr/bin/env python3
"""Fails when no job runs here and yet less memory is free than Slurm may give to jobs.

Nothing can be said while a job runs, or when nobody can tell. As the check that drains, it passes then; as the one
that lifts the drain again, by its name, it fails.
"""

import json
import os
import subprocess
import sys


def runs_a_job() -> bool:
    """Also when nobody can tell."""
    found = subprocess.run(["scontrol", "listjobs", "--json"], capture_output=True, text=True)
    try:
        return bool(json.loads(found.stdout)["jobs"])
    except (ValueError, KeyError, TypeError):
        return True


def free_bytes() -> int:
    with open("/proc/meminfo") as lines:
        for line in lines:
            name, value = line.split(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    return sys.maxsize


wanted = int(os.environ.get("CHECKS_NODE_REAL_MEM_BYTES") or 0)
if not wanted or runs_a_job():
    sys.exit(1 if ".undrain." in sys.argv[0] else 0)
free = free_bytes()
if free >= wanted:
    sys.exit(0)
with open(3, "w") as details:
    details.write(f"{free >> 20} MiB of memory are free, and jobs may ask for {wanted >> 20} MiB")
sys.exit(1)
