#!/bin/sh
# One file per GPU of the job, named by its number, with the job's id in it: dcgm-exporter labels metrics with it.
# Slurm drains a node whose prolog fails, and a label is not worth a node: whatever goes wrong is told, no more.
directory=@directory@
mkdir -p "$directory"
for number in $(echo "${CUDA_VISIBLE_DEVICES:-${SLURM_JOB_GPUS:-}}" | tr ',' ' '); do
	echo "${SLURM_JOB_ID:-}" >"$directory/$number"
done
exit 0
