"""The job list of slurmrestd, any version, as SlurmJobs."""

from slurm_operator import wire
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurmrest.answers.envelope import Envelope
from slurm_operator.slurmrest.answers.values import (
    Number,
    Text,
    Words,
    count,
    host_words,
    job_state,
    minutes,
    moment,
    shared,
    whole,
)


class WireJob(wire.Record):
    """The fields we read; the others are passed over without being built."""

    job_id: int
    job_state: Words = None
    name: Text = None
    user_name: Text = None
    user_id: Number = None
    account: Text = None
    partition: Text = None
    qos: Text = None
    state_reason: Text = None
    nodes: Words = None
    required_nodes: Words = None
    excluded_nodes: Words = None
    batch_host: Text = None
    resv_name: Text = None
    features: Text = None
    tres_per_node: Text = None
    comment: Text = None
    admin_comment: Text = None
    extra: Text = None
    array_job_id: Number = None
    array_task_id: Number = None
    array_task_string: Text = None
    het_job_id: Number = None
    cpus: Number = None
    node_count: Number = None
    requeue: bool = False
    batch_flag: bool = False
    hold: bool = False
    restart_cnt: Number = None
    submit_time: Number = None
    start_time: Number = None
    end_time: Number = None
    time_limit: Number = None


class _Signal(wire.Record):
    name: Text = None


class _ExitCode(wire.Record):
    return_code: Number = None
    signal: _Signal = _Signal()


class WireJobDetail(WireJob):
    """With what only people want to know."""

    eligible_time: Number = None
    tres_req_str: Text = None
    het_job_offset: Number = None
    exit_code: _ExitCode = _ExitCode()


class JobDetailsReply(Envelope):
    jobs: list[WireJobDetail] | None = None


class JobsReply(Envelope):
    jobs: list[WireJob] | None = None


def slurm_job(found: WireJob) -> SlurmJob:
    state = job_state(found.job_state)
    return SlurmJob(
        job_id=found.job_id,
        state=state,
        name=shared(found.name),
        user=shared(found.user_name),
        user_id=count(found.user_id),
        account=shared(found.account),
        partition=shared(found.partition),
        qos=shared(found.qos),
        state_reason=shared(found.state_reason),
        nodes=host_words(found.nodes),
        required_nodes=host_words(found.required_nodes),
        excluded_nodes=host_words(found.excluded_nodes),
        batch_host=shared(found.batch_host),
        reservation=shared(found.resv_name),
        features=shared(found.features),
        gres=shared(found.tres_per_node),
        comment=found.comment or "",
        admin_comment=found.admin_comment or "",
        extra=found.extra or "",
        array_job_id=whole(found.array_job_id) or None,
        array_task_id=whole(found.array_task_id),
        array_tasks=found.array_task_string or "",
        het_job_id=whole(found.het_job_id) or None,
        cpus=count(found.cpus),
        node_count=count(found.node_count),
        # What srun or salloc began says requeue too, by its partition's default, and is refused (error 2039).
        is_requeueable=found.requeue and found.batch_flag,
        is_held=found.hold,
        restarts=count(found.restart_cnt),
        submit_time=moment(found.submit_time),
        # Of a pending job these are the scheduler's guesses, new in every cycle.
        start_time=None if state.is_pending else moment(found.start_time),
        end_time=None if state.is_pending else moment(found.end_time),
        time_limit=minutes(found.time_limit),
    )


def ended_job(found: WireJob) -> EndedJob:
    return EndedJob(
        job_id=found.job_id,
        state=job_state(found.job_state),
        nodes=host_words(found.nodes),
        reason=shared(found.state_reason),
        end_time=moment(found.end_time),
    )


class OverJob(wire.Record):
    """How a job ended, and by which ids it is known."""

    end: EndedJob
    ids: tuple[int, ...]


def over_job(found: WireJob) -> OverJob:
    wholes = filter(None, (whole(found.array_job_id), whole(found.het_job_id)))
    return OverJob(end=ended_job(found), ids=tuple(dict.fromkeys((found.job_id, *wholes))))


def ids(job: SlurmJob) -> set[int]:
    """By which it is known: its own, and that of the array or the heterogeneous job that it is a part of."""
    return {job.job_id, *filter(None, (job.array_job_id, job.het_job_id))}


def job_detail(found: WireJobDetail) -> JobDetail:
    job = slurm_job(found)
    return JobDetail(
        job=job,
        expected_start=moment(found.start_time) if job.state.is_pending else None,
        eligible_since=moment(found.eligible_time),
        requested=found.tres_req_str or "",
        het_offset=count(found.het_job_offset),
        return_code=whole(found.exit_code.return_code),
        signal=found.exit_code.signal.name or "",
    )
