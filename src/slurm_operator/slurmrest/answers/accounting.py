"""The answers of slurmdbd, any version, as accounting records."""

from slurm_operator import wire
from slurm_operator.slurm.accounting import Account, AccountedCluster, AccountedJob, Association, Qos, User
from slurm_operator.slurmrest.answers.envelope import Envelope
from slurm_operator.slurmrest.answers.values import (
    Number,
    Text,
    Words,
    count,
    host_words,
    job_state,
    moment,
    text,
    whole,
    words,
)


class _Named(wire.Record):
    name: Text = None


class WireAccount(wire.Record):
    name: str
    description: Text = None
    organization: Text = None
    coordinators: list[_Named] | None = None


class AccountsReply(Envelope):
    accounts: list[WireAccount] | None = None


def account(found: WireAccount) -> Account:
    return Account(
        name=found.name,
        description=text(found.description),
        organization=text(found.organization),
        coordinators=tuple(text(coordinator.name) for coordinator in found.coordinators or ()),
    )


class _UserDefault(wire.Record):
    account: Text = None


class WireUser(wire.Record):
    name: str
    default: _UserDefault = _UserDefault()
    administrator_level: Words = None


class UsersReply(Envelope):
    users: list[WireUser] | None = None


def user(found: WireUser) -> User:
    levels = frozenset(words(found.administrator_level))
    return User(name=found.name, default_account=text(found.default.account), administrator_level=levels)


class _Preempt(wire.Record):
    list: Words = None


class WireQos(wire.Record):
    name: str
    id: Number = None
    description: Text = None
    priority: Number = None
    flags: Words = None
    preempt: _Preempt = _Preempt()


class QosReply(Envelope):
    qos: list[WireQos] | None = None


def qos(found: WireQos) -> Qos:
    return Qos(
        name=found.name,
        id=whole(found.id),
        description=text(found.description),
        priority=count(found.priority),
        flags=frozenset(words(found.flags)),
        preempts=words(found.preempt.list),
    )


class WireAssociation(wire.Record):
    account: Text = None
    cluster: Text = None
    user: Text = None
    partition: Text = None
    parent_account: Text = None
    id: Number = None
    is_default: bool = False
    shares_raw: Number = None
    qos: Words = None


class AssociationsReply(Envelope):
    associations: list[WireAssociation] | None = None


def association(found: WireAssociation) -> Association:
    return Association(
        account=text(found.account),
        cluster=text(found.cluster),
        user=text(found.user),
        partition=text(found.partition),
        parent_account=text(found.parent_account),
        id=whole(found.id),
        is_default=found.is_default,
        shares=count(found.shares_raw),
        qos=words(found.qos),
    )


class _Controller(wire.Record):
    host: Text = None
    port: Number = None


class WireCluster(wire.Record):
    name: str
    controller: _Controller = _Controller()
    rpc_version: Number = None


class ClustersReply(Envelope):
    clusters: list[WireCluster] | None = None


def cluster(found: WireCluster) -> AccountedCluster:
    return AccountedCluster(
        name=found.name,
        controller_host=text(found.controller.host),
        controller_port=count(found.controller.port),
        rpc_version=count(found.rpc_version),
    )


class _JobState(wire.Record):
    current: Words = None


class _JobTimes(wire.Record):
    submission: Number = None
    start: Number = None
    end: Number = None
    elapsed: Number = None


class _ExitCode(wire.Record):
    return_code: Number = None


class _Array(wire.Record):
    job_id: Number = None
    task_id: Number = None


class WireBookedJob(wire.Record):
    job_id: int
    array: _Array = _Array()
    state: _JobState = _JobState()
    cluster: Text = None
    name: Text = None
    user: Text = None
    account: Text = None
    partition: Text = None
    qos: Text = None
    nodes: Words = None
    time: _JobTimes = _JobTimes()
    exit_code: _ExitCode = _ExitCode()


class BookedJobsReply(Envelope):
    jobs: list[WireBookedJob] | None = None


def booked_job(found: WireBookedJob) -> AccountedJob:
    return AccountedJob(
        job_id=found.job_id,
        state=job_state(found.state.current),
        cluster=text(found.cluster),
        name=text(found.name),
        user=text(found.user),
        account=text(found.account),
        partition=text(found.partition),
        qos=text(found.qos),
        nodes=() if found.nodes == "None assigned" else host_words(found.nodes),
        submit_time=moment(found.time.submission),
        start_time=moment(found.time.start),
        end_time=moment(found.time.end),
        elapsed_seconds=count(found.time.elapsed),
        return_code=whole(found.exit_code.return_code),
        array_job_id=whole(found.array.job_id) or None,
        array_task_id=whole(found.array.task_id),
    )
