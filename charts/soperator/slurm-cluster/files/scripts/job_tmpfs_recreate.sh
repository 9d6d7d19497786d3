#!/bin/sh
# A directory in memory for each job: /mnt/memory/job_ID.
memory=/mnt/jail/mnt/memory
[ -d "$memory" ] && [ -n "$SLURM_JOB_ID" ] || exit 0
rm -rf "$memory/job_$SLURM_JOB_ID"
mkdir "$memory/job_$SLURM_JOB_ID" && chmod 0777 "$memory/job_$SLURM_JOB_ID"
exit 0
