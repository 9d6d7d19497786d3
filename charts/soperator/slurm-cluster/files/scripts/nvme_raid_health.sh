#!/bin/sh
# Fails when a software RAID lacks a disk.
[ -r /proc/mdstat ] || exit 0
broken=$(grep -B 1 -E '\[[U_]*_[U_]*\]' /proc/mdstat | grep -oE '^md[^ ]+' | tr '\n' ' ')
[ -n "$broken" ] || exit 0
echo "RAID without a disk: $broken" >&3
exit 1
