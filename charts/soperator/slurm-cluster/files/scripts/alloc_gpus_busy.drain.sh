#!/bin/sh
# Fails when processes run on GPUs that the job was given: somebody else uses them.
command -v nvidia-smi > /dev/null || exit 0
gpus=${SLURM_JOB_GPUS:-$CUDA_VISIBLE_DEVICES}
[ -n "$gpus" ] || exit 0
busy=$(nvidia-smi --id="$gpus" --query-compute-apps=pid,process_name --format=csv,noheader 2> /dev/null) || exit 0
[ -n "$busy" ] || exit 0
echo "processes on GPUs $gpus: $(echo "$busy" | tr '\n' ';')" >&3
exit 1
