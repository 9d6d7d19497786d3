#!/bin/sh
# Directories in memory of jobs that do not run here any more, a minute after their last change.
memory=/mnt/jail/mnt/memory
[ -d "$memory" ] || exit 0
running=$(scontrol listjobs --json 2> /dev/null) || exit 0
now=$(date +%s)
for place in "$memory"/job_*; do
    [ -d "$place" ] || continue
    job=${place##*/job_}
    echo "$running" | grep -Eq "\"job_id\": *\"?$job\b" && continue
    changed=$(stat -c %Y "$place") && [ $((now - changed)) -gt 60 ] && rm -rf "$place"
done
exit 0
