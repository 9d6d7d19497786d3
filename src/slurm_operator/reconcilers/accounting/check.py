"""A look at the database before slurmdbd starts: an init container tries it, its last words are read here.

Without it slurmdbd would end again and again, or hang, with a line in its log that only experts understand.
"""

import re

from slurm_operator import wire
from slurm_operator.api.shared.auth import SlurmUser
from slurm_operator.conditions import Reason
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ContainerStateTerminated, Pod
from slurm_operator.reconcilers.accounting.database import Address

CONTAINER = "check-database"

# A verdict is told once, by ending with it; while it stays the same the container only goes on trying. So
# nothing restarts again and again, and slurmdbd starts seconds after the database is in order.
_SCRIPT = r"""
told=/run/check-database
client=$(command -v mariadb || command -v mysql)
export MYSQL_PWD="$(printf '%s' "$MYSQL_PWD")"
ask() {
  "$client" --no-defaults --loose-disable-ssl-verify-server-cert --protocol=TCP --connect-timeout=5 --batch \
    --skip-column-names --host="$DATABASE_HOST" --port="$DATABASE_PORT" --user="$DATABASE_USER" \
    --execute="$1" 2>&1
}
try() {
  said=$(ask "$1") && return 0
  verdict=$(printf '%s\n' "$said" | grep -m 1 ERROR || printf '%s\n' "$said" | tail -n 1)
  return 1
}
is_reachable() {
  timeout 5 bash -c ': < "/dev/tcp/$DATABASE_HOST/$DATABASE_PORT"' 2> /dev/null && return 0
  verdict="ERROR 2003: no answer"
  return 1
}
is_usable() {
  if [ -z "$client" ]; then is_reachable; return; fi
  try "SELECT 1" &&
  try "CREATE DATABASE IF NOT EXISTS \`$DATABASE_NAME\`" &&
  try "USE \`$DATABASE_NAME\`;
    DROP TABLE IF EXISTS slurm_operator_check; CREATE TABLE slurm_operator_check (a INT PRIMARY KEY);
    ALTER TABLE slurm_operator_check ADD COLUMN b INT; CREATE INDEX i ON slurm_operator_check (b);
    INSERT INTO slurm_operator_check VALUES (1, 1); UPDATE slurm_operator_check SET b = 2;
    SELECT * FROM slurm_operator_check; DELETE FROM slurm_operator_check; DROP TABLE slurm_operator_check;
    DROP PROCEDURE IF EXISTS slurm_operator_check; CREATE PROCEDURE slurm_operator_check() SELECT 1;
    DROP PROCEDURE slurm_operator_check"
}
trap 'exit 143' TERM
bad=0
while ! is_usable; do
  bad=$((bad + 1))
  if [ $bad -ge 3 ] && [ "$verdict" != "$(cat $told 2> /dev/null)" ]; then
    printf '%s\n' "$verdict" | tee $told > /dev/termination-log
    printf '%s\n' "$verdict"
    exit 1
  fi
  sleep 2 & wait $!
done
{
  timeout 10 slurmdbd -V 2> /dev/null | sed -n 's/^slurm[^ ]* /slurmdbd\t/p'
  [ -z "$client" ] || ask "SHOW GLOBAL VARIABLES WHERE Variable_name IN
  ('version', 'innodb_snapshot_isolation', 'innodb_lock_wait_timeout')"
} > /dev/termination-log
"""


def container(image: str, address: Address, user: SlurmUser) -> Manifest:
    """Runs in the slurmdbd pod before slurmdbd, with the same image and the same password."""
    password = {"secretKeyRef": {"name": address.password.name, "key": address.password.key}}
    return {
        "name": CONTAINER,
        "image": image,
        "command": ["sh", "-c", _SCRIPT.lstrip()],
        "env": [
            {"name": "DATABASE_HOST", "value": address.host},
            {"name": "DATABASE_PORT", "value": str(address.port)},
            {"name": "DATABASE_NAME", "value": address.database},
            {"name": "DATABASE_USER", "value": address.user},
            {"name": "MYSQL_PWD", "valueFrom": password},
        ],
        "securityContext": user.security,
        "volumeMounts": [
            # slurmdbd tells its version only where it finds its configuration.
            {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True},
            {"name": "run", "mountPath": "/run"},
        ],
    }


class Verdict(wire.Record):
    """What the check found. Without a reason the database can be used; `advice` says what to improve."""

    reason: Reason | None = None
    message: str = ""
    version: str = ""
    advice: str = ""
    slurm_version: str = ""


def verdict(pod: Pod | None, address: Address) -> Verdict | None:
    """The last words of the check in this pod, in words for people; None before there are any."""
    statuses = pod.status.init_container_statuses if pod is not None else ()
    for status in statuses:
        if status.name == CONTAINER:
            ended = status.state.terminated or status.last_state.terminated
            return _read(ended, address) if ended is not None else None
    return None


def _read(ended: ContainerStateTerminated, address: Address) -> Verdict:
    said = ended.message.strip()
    if ended.exit_code == 0:
        return _found(said)
    found = re.search(r"ERROR (\d+)", said)
    reason, why = _TROUBLES.get(
        int(found[1]) if found else 0, (Reason.DATABASE_UNUSABLE, "cannot be used: {said}")
    )
    words = why.format(
        said=said,
        user=address.user,
        database=address.database,
        secret=address.password.name,
        host=address.host,
    )
    return Verdict(reason=reason, message=f"waiting for the database at {address}: it {words}")


def _found(said: str) -> Verdict:
    facts = dict(line.split("\t", 1) for line in said.splitlines() if "\t" in line)
    advice = ""
    if facts.get("innodb_snapshot_isolation", "").upper() in ("ON", "1"):
        advice = "innodb_snapshot_isolation is on: slurmdbd ends when two writes meet. Set it to OFF."
    elif facts.get("innodb_lock_wait_timeout", "900").isdigit() and _seconds(facts) < 900:
        advice = f"innodb_lock_wait_timeout is {_seconds(facts)}; slurmdbd asks for 900."
    return Verdict(
        version=facts.get("version", ""), advice=advice, slurm_version=facts.get("slurmdbd", "").strip()
    )


def _seconds(facts: dict[str, str]) -> int:
    return int(facts.get("innodb_lock_wait_timeout", "900"))


_NO_ANSWER = (
    Reason.DATABASE_ADDRESS,
    "does not answer. Is it running, may this namespace connect to it, are host and port right? ({said})",
)
_NO_GRANT = (
    Reason.DATABASE_GRANT,
    "lets user {user!r} in, but not do what slurmdbd must. Run there: GRANT ALL ON `{database}`.* TO "
    "'{user}'@'%'; ({said})",
)

# By the numbers of MariaDB's and MySQL's own errors.
_TROUBLES = {
    2002: _NO_ANSWER,
    2003: _NO_ANSWER,
    2013: _NO_ANSWER,
    2005: (
        Reason.DATABASE_ADDRESS,
        "has no address: the name {host!r} is unknown. Correct the host. ({said})",
    ),
    1130: (
        Reason.DATABASE_LOGIN,
        "accepts no user from this pod's address. Its account must be {user!r}@'%', or one for this network. "
        "({said})",
    ),
    1045: (
        Reason.DATABASE_LOGIN,
        "refuses user {user!r} with the password in Secret {secret!r}. Correct one of them. ({said})",
    ),
    1698: (Reason.DATABASE_LOGIN, "does not let user {user!r} in by password. Give it one. ({said})"),
    1040: (Reason.DATABASE_BUSY, "has no connection left. Raise max_connections there. ({said})"),
    1290: (Reason.DATABASE_READ_ONLY, "is read-only. Name the one that takes writes. ({said})"),
    1836: (Reason.DATABASE_READ_ONLY, "is read-only. Name the one that takes writes. ({said})"),
    3159: (Reason.DATABASE_TLS, "wants TLS. Set StorageParameters in extraConf. ({said})"),
    **dict.fromkeys((1044, 1142, 1143, 1227, 1370, 1410), _NO_GRANT),
}
