#!/bin/sh
# What the job left in its directory in memory.
[ -n "$SLURM_JOB_ID" ] && rm -rf "/mnt/jail/mnt/memory/job_$SLURM_JOB_ID"
exit 0
