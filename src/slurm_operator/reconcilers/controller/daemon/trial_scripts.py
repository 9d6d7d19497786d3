"""Scripts that try out a configuration: slurmctld on the new files, with an empty state, touching nothing.

A reconfigure with files that slurmctld cannot take ends it in the foreground, and there is no option to only
test them. So a slurmctld of the same image and host name, without accounting, says within milliseconds
whether it would run. Its verdict is the container's termination message.
"""

from typing import Final

from slurm_operator.reconcilers.controller.annotations import DIGEST_WORD
from slurm_operator.reconcilers.controller.configuration.slurm_conf import ETC

GOOD: Final = "good"

# Of the log, what names the cause: the last complaints before the end, in one message of at most 4096 bytes.
TRY_OUT: Final = f"""\
log=/tmp/slurmctld.log
end=/dev/termination-log
: > "$log"
slurmctld -D -c > "$log" 2>&1 &
pid=$!
for _ in $(seq 300); do
  grep -qE 'Running as primary controller|fatal:|cannot stat file' "$log" && break
  kill -0 "$pid" 2> /dev/null || break
  sleep 0.1
done
kill -KILL "$pid" 2> /dev/null
cat "$log"
if grep -q 'Running as primary controller' "$log" && ! grep -qE 'fatal:|cannot stat file' "$log"; then
  echo {GOOD} > "$end"
  exit 0
fi
grep -E 'fatal:|error:|cannot stat file' "$log" | tail -n 8 | tail -c 3000 > "$end"
[ -s "$end" ] || {{ echo 'slurmctld did not start within 30 s'; tail -n 5 "$log"; }} > "$end"
exit 1
"""

# Keys that would reach beyond: to the database, to other slurmctlds (a first one that starts asks its backups
# to step down), to programs that are run when a slurmctld takes charge, and to a state that `-c` would clear.
REACHES_OUT: Final = (
    r"(AccountingStorage\w*|SlurmctldHost|SlurmctldAddr|SlurmctldPrimaryO(n|ff)Prog|StateSaveLocation)"
)

# The container that tries out the files before slurmctld starts for the first time; its volume, too.
FIRST: Final = "slurmctld-rehearsal"
# Where it finds what slurmctld will: in the usual places it has room of its own.
MOUNTED: Final = "/mnt/slurmctld-rehearsal"
STATE_VARIABLE: Final = "STATE_DIRECTORY"
# Workers that start in the same moment must not find it: they would register with a slurmctld that ends.
_PORT: Final = 16817

# A slurmctld that finds its state has started before: its files were tried out, and jobs may wait for it. The
# digest of files that are refused stands above what was said to them. Lines keep their numbers. `sed` and
# `uname` are in images that have no `awk` and no `hostname`.
TRY_OUT_FIRST: Final = f"""\
conf={MOUNTED}/etc/slurm.conf
key='^[[:space:]]*StateSaveLocation[[:space:]]*=[[:space:]]*'
chosen=$(sed -n -E "s,$key\\"?([^\\"#[:space:]]+).*,\\\\1,Ip" "$conf" | tail -n 1)
[ "$chosen" != "${STATE_VARIABLE}" ] || chosen=
for state in {MOUNTED}/state ${{chosen:+"$chosen"}}; do
  if ls -A "$state" 2> /dev/null | grep -qvx lost+found; then
    echo {GOOD} > /dev/termination-log
    exit 0
  fi
done
rm -f {ETC}/* 2> /dev/null
cp -L {MOUNTED}/etc/* {ETC}/
sed -E '\\,^[[:space:]]*({REACHES_OUT}[[:space:]]*[-+*/]?=|SlurmctldPort[[:space:]]*=),I {{
:next
/(^|[^\\])(\\\\\\\\)*\\\\[[:space:]]*$/ {{
N
b next
}}
s/[^\\n]+/#/g
}}' "$conf" > {ETC}/slurm.conf
cat >> {ETC}/slurm.conf <<END
AccountingStorageType=accounting_storage/none
SlurmctldHost=$(uname -n)(127.0.0.1)
SlurmctldPort={_PORT}
StateSaveLocation=${STATE_VARIABLE}
END
(
{TRY_OUT})
verdict=$?
if [ "$verdict" -ne 0 ]; then
  said=$(cat /dev/termination-log)
  {{ grep -o '{DIGEST_WORD}[0-9a-f]*' "$conf" | tail -n 1; echo "$said"; }} > /dev/termination-log
fi
exit "$verdict"
"""
