"""What slurmdbd keeps: who may run what, and what ran."""

from datetime import datetime

from slurm_operator import wire
from slurm_operator.slurm.states import JobState


class Account(wire.Record):
    name: str
    description: str = ""
    organization: str = ""
    coordinators: tuple[str, ...] = ()


class User(wire.Record):
    name: str
    default_account: str = ""
    administrator_level: frozenset[str] = frozenset()


class Qos(wire.Record):
    """A quality of service. `preempts` are the names it may push aside."""

    name: str
    id: int | None = None
    description: str = ""
    priority: int = 0
    flags: frozenset[str] = frozenset()
    preempts: tuple[str, ...] = ()


class Association(wire.Record):
    """A user (or, without one, the account itself) in an account of a cluster."""

    account: str
    cluster: str = ""
    user: str = ""
    partition: str = ""
    parent_account: str = ""
    id: int | None = None
    is_default: bool = False
    shares: int = 1
    qos: tuple[str, ...] = ()


class AccountedCluster(wire.Record):
    """A cluster that reports to this slurmdbd. Without a host its slurmctld is not connected."""

    name: str
    controller_host: str = ""
    controller_port: int = 0
    rpc_version: int = 0


class AccountedJob(wire.Record):
    """A job in the books: also one that slurmctld has forgotten."""

    job_id: int
    state: JobState
    cluster: str = ""
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    nodes: tuple[str, ...] = ()
    submit_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    elapsed_seconds: int = 0
    return_code: int | None = None
    array_job_id: int | None = None
    array_task_id: int | None = None
