#!/bin/sh
# Runs the checks of checks.json that are meant for this moment. A worker without a program for them starts jobs all the same.
export CHECKS_CONTEXT=prolog
if [ -x /usr/local/bin/slurm-entry ]; then
    exec /usr/local/bin/slurm-entry run-checks
fi
here=$(dirname "$0")
if [ -f "$here/check_runner.py" ] && command -v python3 > /dev/null; then
    exec python3 "$here/check_runner.py"
fi
exit 0
