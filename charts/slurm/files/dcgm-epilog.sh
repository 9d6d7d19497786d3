#!/bin/sh
# The GPUs of the job are nobody's again.
set -eu
directory=@directory@
for number in $(echo "${CUDA_VISIBLE_DEVICES:-${SLURM_JOB_GPUS:-}}" | tr ',' ' '); do
	rm -f "$directory/$number"
done
