#!/bin/sh
# What this prints as `export NAME=value` is in the environment of the task; `print ...` goes into its output.
[ "${SLURM_LOCALID:-0}" = 0 ] || exit 0
# Docker puts its containers beside the task, so that they count for the limits of the job.
if [ -S /var/run/soperator-docker.sock ]; then
    parent=$(cut -d: -f3- /proc/self/cgroup | head -n 1)
    while [ "${parent##*/}" != user ] && [ "$parent" != "${parent%/*}" ]; do
        parent=${parent%/*}
    done
    echo export DOCKER_HOST=unix:///var/run/soperator-docker.sock
    [ -z "$parent" ] || echo "export DOCKER_CUSTOM_HEADERS=Cgroup-Parent=$parent"
fi
exit 0
