#!/bin/sh
# A file for each GPU with the job that has it, for dcgm-exporter. It never fails: then Slurm would drain the node.
directory=/var/run/nebius/slurm
gpus=${SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES}
[ -n "$gpus" ] && [ -n "$SLURM_JOB_ID" ] || exit 0
mkdir -p "$directory" 2> /dev/null || exit 0
for gpu in $(echo "$gpus" | tr , ' '); do
    echo "$SLURM_JOB_ID" > "$directory/$gpu"
done 2> /dev/null
exit 0
