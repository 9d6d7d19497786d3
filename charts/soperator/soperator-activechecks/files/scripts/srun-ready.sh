#!/bin/bash
# Waits until user soperatorchecks can run a task: 120 tries, two seconds apart.
set -uo pipefail
user=soperatorchecks
ids=$(grep "^$user:" /mnt/jail/etc/passwd | cut -d: -f3,4)
if [ -z "$ids" ]; then
    echo "There is no user $user in the shared root: create-user-soperatorchecks makes it." >&2
    exit 1
fi
as_user() { setpriv --reuid="${ids%:*}" --regid="${ids#*:}" --clear-groups -- "$@"; }
options=(--ntasks=1 --time=1 --chdir=/ --immediate=10 --job-name=srun-ready)
if scontrol --oneliner show partition hidden 2> /dev/null | grep -q PartitionName=hidden; then
    options+=(--partition=hidden)
fi
for try in $(seq 120); do
    if as_user timeout 60 srun "${options[@]}" true; then
        echo "A task ran, at try $try."
        exit 0
    fi
    sleep 2
done
echo "No task ran in 120 tries." >&2
exit 1
