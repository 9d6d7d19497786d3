"""The configuration files of the boxes: as in pods, but quick to notice and quick to forget."""

from collections.abc import Mapping, Sequence

CONTROLLER = "ctld-0"

SETTINGS = {
    "ClusterName": "test",
    "SlurmUser": "slurm",
    "AuthType": "auth/slurm",
    "CredType": "cred/slurm",
    # A requeued job waits until its credential has expired: two minutes unless told.
    "AuthInfo": "use_client_ids,cred_expire=5",
    "AuthAltTypes": "auth/jwt",
    "AuthAltParameters": "jwt_key=/etc/slurm/jwt.key",
    "StateSaveLocation": "/var/spool/slurmctld/state",
    "SlurmdSpoolDir": "/var/spool/slurmd",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "ReturnToService": "2",
    "SlurmdTimeout": "30",
    "MinJobAge": "10",
    "MaxNodeCount": "1024",
    "SlurmctldParameters": "enable_configless",
    # Workers may claim more memory than the machine has.
    "SlurmdParameters": "config_overrides",
    "SelectType": "select/cons_tres",
    "MetricsType": "metrics/openmetrics",
}
ACCOUNTING = {"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageHost": CONTROLLER}
LINES = (
    "NodeSet=all Feature=all",
    "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED",
)

CGROUP_CONF = "CgroupPlugin=disabled\n"

SLURMDBD_CONF = f"""\
DbdHost={CONTROLLER}
SlurmUser=slurm
AuthType=auth/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageLoc=slurm_acct_db
StorageUser=slurm
LogFile=/dev/null
"""

DATABASE_SQL = """\
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@localhost;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
"""


def slurm_conf(address: str, settings: Mapping[str, str], lines: Sequence[str]) -> str:
    """slurm.conf of a controller at `address`: our settings, the given ones over them, then the lines.

    A setting that is empty is left out.
    """
    merged = {"SlurmctldHost": f"{CONTROLLER}({address})"} | SETTINGS | dict(settings)
    return "\n".join([*(f"{key}={value}" for key, value in merged.items() if value), *lines]) + "\n"
