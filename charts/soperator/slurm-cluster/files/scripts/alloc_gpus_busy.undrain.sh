#!/bin/sh
# Passes when no process runs on any GPU of a worker that was drained for one.
command -v nvidia-smi > /dev/null || exit 1
busy=$(nvidia-smi --query-compute-apps=pid --format=csv,noheader 2> /dev/null) || exit 1
[ -z "$busy" ]
