#!/bin/sh
# The files that map_job_dcgm.sh wrote.
for gpu in $(echo "${SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES}" | tr , ' '); do
    rm -f "/var/run/nebius/slurm/$gpu"
done 2> /dev/null
exit 0
