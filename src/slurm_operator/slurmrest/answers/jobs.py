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
        name=found.name or "",
        user=found.user_name or "",
        user_id=count(found.user_id),
        account=found.account or "",
        partition=found.partition or "",
        qos=found.qos or "",
        state_reason=found.state_reason or "",
        nodes=host_words(found.nodes),
        required_nodes=host_words(found.required_nodes),
        excluded_nodes=host_words(found.excluded_nodes),
        batch_host=found.batch_host or "",
        reservation=found.resv_name or "",
        features=found.features or "",
        gres=found.tres_per_node or "",
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
        reason=found.state_reason or "",
        end_time=moment(found.end_time),
    )


def ids(found: WireJob) -> set[int]:
    """By which it is known: its own, and that of the array or the heterogeneous job that it is a part of."""
    return {found.job_id} | {
        whole_id for one in (found.array_job_id, found.het_job_id) if (whole_id := whole(one))
    }


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
