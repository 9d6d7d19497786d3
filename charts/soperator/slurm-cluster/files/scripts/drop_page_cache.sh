#!/bin/sh
# The next job starts with memory that holds nobody's files.
sync
[ ! -w /proc/sys/vm/drop_caches ] || echo 3 > /proc/sys/vm/drop_caches
exit 0
