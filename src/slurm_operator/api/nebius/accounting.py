"""slurmdbd and its database, as a SlurmCluster describes them."""

from collections.abc import Iterator
from typing import Any

from slurm_operator.api.nebius.containers import NodeContainer, SlurmNode
from slurm_operator.api.schema.model import Choice, model, prop
from slurm_operator.api.schema.problems import Problem, warning
from slurm_operator.api.shared.pods import Json

_TRES = r"^((Billing|CPU|Mem|VMem|Node|Energy|Pages|FS/Disk|FS/Lustre|Gres/gpu)(,)?)+$"


class YesNo(Choice):
    """Whether records are kept in an archive before they are purged."""

    YES = "yes", "they are."
    NO = "no", "they are not."


class DebugLevel(Choice):
    """How much slurmdbd logs."""

    QUIET = "quiet", "nothing."
    FATAL = "fatal", "what ends it."
    ERROR = "error", "errors."
    INFO = "info", "what happens."
    VERBOSE = "verbose", "more of it."
    DEBUG = "debug", "for debugging."
    DEBUG2 = "debug2", "more."
    DEBUG3 = "debug3", "more."
    DEBUG4 = "debug4", "more."
    DEBUG5 = "debug5", "everything."


class DebugFlag(Choice):
    """A subsystem of slurmdbd that logs more."""

    AUDIT_RPCS = "AuditRPCs", "every request."
    ARCHIVE = "DB_ARCHIVE", "archiving and purging."
    ASSOC = "DB_ASSOC", "associations."
    EVENT = "DB_EVENT", "events of nodes."
    JOB = "DB_JOB", "jobs."
    QOS = "DB_QOS", "qualities of service."
    QUERY = "DB_QUERY", "queries."
    RESERVATION = "DB_RESERVATION", "reservations."
    RESOURCE = "DB_RESOURCE", "resources."
    STEP = "DB_STEP", "job steps."
    TRES = "DB_TRES", "trackable resources."
    USAGE = "DB_USAGE", "usage."
    NETWORK = "Network", "connections."


class GatherType(Choice):
    """How the usage of running jobs is measured."""

    LINUX = "jobacct_gather/linux", "from /proc."
    CGROUP = "jobacct_gather/cgroup", "from cgroups."
    NONE = "jobacct_gather/none", "not at all."


class GatherParams(Choice):
    """An option of the measurement."""

    NO_SHARED = "NoShared", "memory that processes share is left out."
    USE_PSS = "UsePss", "shared memory is divided among its users."
    OVER_MEMORY_KILL = "OverMemoryKill", "jobs that use more memory than they asked for are ended."
    DISABLE_GPU_ACCT = "DisableGPUAcct", "GPUs are not measured."


@model
class PasswordSecretKey:
    """The entry of a Secret that holds the password."""

    name: str = prop("Name of the Secret.", default="")
    key: str = prop("Which entry of the Secret; not the password.", default="")


@model
class DatabaseTls:
    """Encrypted connections to the database."""

    server_ca_secret_ref: str = prop(
        "Secret whose `ca.crt` signs the certificate of the database.", default="", name="serverCASecretRef"
    )
    client_cert_secret_ref: str = prop(
        "Secret whose `tls.crt` and `tls.key` slurmdbd shows to the database.", default=""
    )


@model
class ExternalDatabase:
    """A MySQL or MariaDB that exists already."""

    enabled: bool = prop("Whether slurmdbd uses it.", default=False)
    host: str = prop("Host name or address.", default="")
    port: int = prop("TCP port.", default=3306)
    user: str = prop("User of the database.", default="")
    password_secret_key_ref: PasswordSecretKey = prop("Where the password is.", default=PasswordSecretKey())
    tls: DatabaseTls | None = prop("Encrypted connections.", default=None, nullable=True)
    storage_parameters: dict[str, str] = prop("More entries of StorageParameters.", default={})

    def problems(self) -> Iterator[Problem]:
        if self.enabled:
            for name in ("host", "user"):
                if not getattr(self, name):
                    yield Problem(path=name, message="is needed to reach the external database")


@model
class MariadbMetrics:
    """Metrics of the database."""

    enabled: bool = prop("Whether the database serves metrics.", default=True)


@model
class MariadbOperator(NodeContainer):
    """A MariaDB that is made for this cluster."""

    enabled: bool = prop("Whether it is made.", default=False)
    protected_secret: bool = prop(
        "Whether the passwords outlive the cluster and cannot be deleted while it exists. Do not change it "
        "later.",
        default=False,
    )
    pod_security_context: Json = prop("User, group and privileges of the pods.", default={})
    security_context: Json = prop("User and privileges of the container.", default={})
    replicas: int | None = prop("How many database pods to run.", default=None)
    metrics: MariadbMetrics = prop("Metrics of the database.", default=MariadbMetrics())
    replication: Json = prop("How replicas follow the primary, as in the MariaDB operator.", default={})
    storage: Json = prop(
        "Volume of the database, as in the MariaDB operator, such as `size: 30Gi`.", default={}
    )
    priority_class_name: str = prop("PriorityClass of the pods.", default="")


def _archive(what: str, word: YesNo) -> Any:
    return prop(f"Whether {what} are archived before they are purged.", default=word)


def _purge(what: str, after: str) -> Any:
    return prop(f"When {what} are purged, such as `30days` or `12month`.", default=after)


@model
class SlurmdbdConfig:
    """Lines of slurmdbd.conf."""

    archive_events: YesNo = _archive("events of nodes", YesNo.YES)
    archive_jobs: YesNo = _archive("jobs", YesNo.YES)
    archive_resvs: YesNo = _archive("reservations", YesNo.YES)
    archive_steps: YesNo = _archive("job steps", YesNo.NO)
    archive_suspend: YesNo = _archive("suspensions of jobs", YesNo.NO)
    archive_txn: YesNo = prop(
        "Whether transactions are archived before they are purged.", default=YesNo.NO, name="archiveTXN"
    )
    archive_usage: YesNo = _archive("usage records", YesNo.YES)
    debug_level: DebugLevel = prop("How much slurmdbd logs.", default=DebugLevel.INFO)
    debug_flags: DebugFlag | None = prop("A subsystem that logs more.", default=None)
    tcp_timeout: int = prop("Seconds that a connection may take to be made.", default=2)
    purge_event_after: str = _purge("events of nodes", "1month")
    purge_job_after: str = _purge("jobs", "12month")
    purge_resv_after: str = _purge("reservations", "1month")
    purge_step_after: str = _purge("job steps", "1month")
    purge_suspend_after: str = _purge("suspensions of jobs", "1month")
    purge_txn_after: str = prop(
        "When transactions are purged, such as `30days` or `12month`.",
        default="12month",
        name="purgeTXNAfter",
    )
    purge_usage_after: str = _purge("usage records", "24month")
    private_data: str = prop("What users cannot see of each other, separated by commas.", default="")


@model
class AccountingSlurmConfig:
    """Lines of slurm.conf that only count with accounting."""

    accounting_storage_tres: str = prop(
        "Resources that are recorded, separated by commas.",
        default="CPU,Mem,Node,VMem,Gres/gpu",
        pattern=_TRES,
        name="accountingStorageTRES",
    )
    accounting_store_flags: str = prop("What else is recorded of each job.", default="")
    acct_gather_interconnect_type: str = prop("Plugin that measures the network.", default="")
    acct_gather_filesystem_type: str = prop("Plugin that measures file systems.", default="")
    acct_gather_profile_type: str = prop("Plugin that profiles jobs.", default="")
    job_acct_gather_type: GatherType = prop(
        "How the usage of running jobs is measured.", default=GatherType.NONE
    )
    job_acct_gather_frequency: int = prop(
        "Seconds between two measurements; 0: only at the end of a job.", default=0
    )
    job_acct_gather_params: GatherParams | None = prop("An option of the measurement.", default=None)
    priority_weight_age: int = prop("Weight of the waiting time of a job.", default=0)
    priority_weight_fairshare: int = prop("Weight of what the user has already used.", default=0)
    priority_weight_qos: int = prop("Weight of the quality of service.", default=0, name="priorityWeightQOS")
    priority_weight_tres: str = prop(
        "Weights of resources, such as `CPU=1000,Mem=2000`.", default="", name="priorityWeightTRES"
    )


@model
class SlurmNodeAccounting(SlurmNode):
    """slurmdbd and its database."""

    enabled: bool = prop("Whether jobs are recorded.", default=False)
    slurmdbd: NodeContainer | None = prop(
        "The slurmdbd container; its port is 6819 if left out.", default=None, nullable=True
    )
    munge: NodeContainer | None = prop("The munge container beside it.", default=None, nullable=True)
    external_db: ExternalDatabase = prop(
        "A database that exists already.", default=ExternalDatabase(), name="externalDB"
    )
    mariadb_operator: MariadbOperator | None = prop(
        "A MariaDB that is made for this cluster.", default=None, nullable=True
    )
    slurmdbd_config: SlurmdbdConfig = prop("Lines of slurmdbd.conf.", default=SlurmdbdConfig())
    slurm_config: AccountingSlurmConfig = prop(
        "Lines of slurm.conf that only count with accounting.", default=AccountingSlurmConfig()
    )

    @property
    def has_mariadb(self) -> bool:
        """Whether the database is made for this cluster; it wins over an external one."""
        return self.mariadb_operator is not None and self.mariadb_operator.enabled

    def problems(self) -> Iterator[Problem]:
        if not self.enabled:
            return
        if self.has_mariadb and self.external_db.enabled:
            yield warning("externalDB.enabled", "is ignored: mariadbOperator is enabled too, and is used")
        elif not self.has_mariadb and not self.external_db.enabled:
            yield Problem(path="", message="needs a database: enable externalDB or mariadbOperator")
        else:
            yield from (problem.under("externalDB") for problem in self.external_db.problems())
