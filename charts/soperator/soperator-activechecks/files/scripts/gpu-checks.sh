#!/bin/bash
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=50
#SBATCH --deadline=now+4hours
# The checks of the vendor's health-checker for this machine. Only what it calls FAIL fails the job: then the node is drained.
tag=$(nvidia-smi --query-gpu=name --format=csv,noheader | awk '
    { count++; for (model in wanted) if (index($0, model)) found[model]++ }
    BEGIN { split("GB300 B300 B200 H200 H100", names); for (i in names) wanted[names[i]] }
    END { for (i = 1; i <= 5; i++) if (found[names[i]] == count) { print count "x" names[i]; exit } print count "xGPU" }')
if ! command -v health-checker > /dev/null; then
    echo "There is no health-checker in the shared root: nothing is said about this node."
    exit 0
fi
result=$(health-checker run -e soperator_activecheck -p "$tag" -f json-partial --log-level info | tail -n 1)
status=$(echo "$result" | sed -n 's/.*"status" *: *"\([A-Z]*\)".*/\1/p')
echo "$tag: ${status:-no status}: $result"
[ "$status" != FAIL ]
