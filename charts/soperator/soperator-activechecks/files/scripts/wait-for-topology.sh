#!/bin/bash
# Waits for topology.conf in the shared root, where slurm.conf asks for a topology that is read from it.
set -euo pipefail
slurm=/mnt/jail/etc/slurm
until [ -s "$slurm/slurm.conf" ]; do
    echo "waiting for $slurm/slurm.conf"
    sleep 5
done
if ! grep -qiE '^ *TopologyPlugin *= *topology/(tree|block)' "$slurm"/slurm*; then
    echo "Slurm uses no topology.conf."
    exit 0
fi
until [ -s "$slurm/topology.conf" ]; do
    echo "waiting for $slurm/topology.conf"
    sleep 5
done
echo "topology.conf has $(wc -l < "$slurm/topology.conf") lines."
