#!/bin/sh
# Empties /scratch. Its entry in checks.json says `none`: nothing calls it before you say when.
[ -d /scratch ] && find /scratch -xdev -mindepth 1 -delete
exit 0
