#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=5
# Fails when a node is down, drains, fails, or has a reason for either.
nodes=$(sinfo --noheader --Node --all --format='%N %T %E') || exit 1
if [ -z "$nodes" ]; then
    echo "There are no nodes." >&2
    exit 1
fi
broken=$(echo "$nodes" | sort -u | awk '$3 != "none" || tolower($2) ~ /down|drain|fail/' | grep -vE '^[^ ]+ [a-z]+~ none$')
if [ -n "$broken" ]; then
    echo "$broken" >&2
    exit 1
fi
echo "$(echo "$nodes" | sort -u | wc -l) nodes are healthy."
