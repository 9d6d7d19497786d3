#!/bin/sh
# Fails when the file system of the worker's own root is more than 80 % full.
used=$(df --output=pcent / | tail -n 1 | tr -dc 0-9)
[ -n "$used" ] || exit 0
[ "$used" -le 80 ] && exit 0
echo "root file system $used% full; remove what you do not need from /tmp and from container images" >&3
exit 1
