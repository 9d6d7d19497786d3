#!/bin/bash
# Removes directories of jobs in which no file is left, three hours after the last change in them.
set -euo pipefail
profiles=${PROFILES:-/mnt/jail/opt/soperator-outputs/shared/nccl_profiles}
[ -d "$profiles" ] || exit 0
find "$profiles" -mindepth 1 -maxdepth 1 -type d -print0 | while IFS= read -r -d '' job; do
    if [ -z "$(find "$job" ! -type d -print -quit)" ] && [ -z "$(find "$job" -mmin -180 -print -quit)" ]; then
        rm -r "$job"
        echo "removed $job"
    fi
done
