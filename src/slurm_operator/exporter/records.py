"""What the exporter reads from Slurm: nodes and jobs with a few fields more than decisions need."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from slurm_operator import wire
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.tres import MIB, TresError, gres, gres_counts, tres
from slurm_operator.slurmrest.answers.envelope import Envelope
from slurm_operator.slurmrest.answers.jobs import WireJob, slurm_job
from slurm_operator.slurmrest.answers.nodes import WireNode, slurm_node
from slurm_operator.slurmrest.answers.values import (
    Number,
    Text,
    Words,
    count,
    host_words,
    job_state,
    moment,
    whole,
    words,
)


class Node(wire.Record):
    """A Slurm node and what it has. None is what Slurm did not say."""

    record: SlurmNode
    cpus: int | None = None
    cpus_allocated: int | None = None
    cpus_idle: int | None = None
    cpus_effective: int | None = None
    memory: int | None = None  # in bytes, as the three below
    memory_allocated: int | None = None
    memory_free: int | None = None
    memory_effective: int | None = None
    gpus: int = 0
    gpus_allocated: int = 0


class Job(wire.Record):
    """A job of either source, finished ones included."""

    record: SlurmJob
    mail: str = ""
    standard_output: str = ""
    standard_error: str = ""
    user_id: str = ""
    cpus: int | None = None
    memory: int | None = None  # in bytes
    cpus_allocated: int = 0
    memory_allocated: int = 0


class Rpc(wire.Record):
    """Calls of one kind, or of one user, that slurmctld has answered since it started."""

    name: str
    count: int
    seconds: float
    user_id: str = ""


class Diagnosis(wire.Record):
    """slurmctld's own counters, and its clock when it was asked."""

    counters: Mapping[str, float] = {}
    rpcs: tuple[Rpc, ...] = ()
    user_rpcs: tuple[Rpc, ...] = ()
    asked_at: datetime | None = None


# What Slurm says instead of a list of nodes, of a job that has none.
_NOWHERE = "None assigned"


class WireExportedNode(WireNode):
    tres: Text = None
    tres_used: Text = None
    alloc_idle_cpus: Number = None
    specialized_memory: Number = None


class NodesReply(Envelope):
    nodes: list[WireExportedNode] | None = None


def node(found: WireExportedNode) -> Node:
    memory = _bytes(found.real_memory)
    return Node(
        record=slurm_node(found),
        cpus=whole(found.cpus),
        cpus_allocated=whole(found.alloc_cpus),
        cpus_idle=whole(found.alloc_idle_cpus),
        cpus_effective=whole(found.effective_cpus),
        memory=memory,
        memory_allocated=_bytes(found.alloc_memory),
        memory_free=_bytes(found.free_mem),
        memory_effective=None if memory is None else memory - (_bytes(found.specialized_memory) or 0),
        gpus=gpus_of(found.tres or "") or _gres_gpus(found.gres or ""),
        gpus_allocated=gpus_of(found.tres_used or "") or _gres_gpus(found.gres_used or ""),
    )


class WireExportedJob(WireJob):
    mail_user: Text = None
    standard_output: Text = None
    standard_error: Text = None
    tres_alloc_str: Text = None
    tres_req_str: Text = None
    memory_per_node: Number = None


class JobsReply(Envelope):
    jobs: list[WireExportedJob] | None = None


def job(found: WireExportedJob) -> Job:
    """As slurmctld tells it. What it has wins over what it asked for."""
    record = slurm_job(wire.replace(found, nodes=None) if found.nodes == _NOWHERE else found)
    allocated, asked = amounts(found.tres_alloc_str or ""), amounts(found.tres_req_str or "")
    cpus = allocated.get("cpu") or asked.get("cpu") or record.cpus or None
    memory = allocated.get("mem") or asked.get("mem")
    if memory is None and record.node_count and (per_node := _bytes(found.memory_per_node)):
        memory = per_node * record.node_count
    holds = record.state.holds_node
    return Job(
        record=record,
        mail=found.mail_user or "",
        standard_output=found.standard_output or "",
        standard_error=found.standard_error or "",
        user_id="" if (user := whole(found.user_id)) is None else str(user),
        cpus=cpus,
        memory=memory,
        cpus_allocated=allocated.get("cpu", 0) if holds else 0,
        memory_allocated=allocated.get("mem", 0) if holds else 0,
    )


class _Tres(wire.Record):
    type: Text = None
    name: Text = None
    count: Number = None


class _BookedTres(wire.Record):
    allocated: list[_Tres] | None = None
    requested: list[_Tres] | None = None


class _BookedState(wire.Record):
    current: Words = None
    reason: Text = None


class _BookedTimes(wire.Record):
    submission: Number = None
    start: Number = None
    end: Number = None
    limit: Number = None


class _BookedArray(wire.Record):
    job_id: Number = None
    task_id: Number = None


class WireBookedJob(wire.Record):
    job_id: int
    state: _BookedState = _BookedState()
    time: _BookedTimes = _BookedTimes()
    array: _BookedArray = _BookedArray()
    tres: _BookedTres = _BookedTres()
    name: Text = None
    user: Text = None
    account: Text = None
    partition: Text = None
    nodes: Words = None
    stdout: Text = None
    stderr: Text = None
    allocation_nodes: Number = None
    hold: bool = False


class BookedJobsReply(Envelope):
    jobs: list[WireBookedJob] | None = None


def booked_job(found: WireBookedJob) -> Job:
    """As slurmdbd tells it. The end of a running job is when its time is up: the books have none yet."""
    state = job_state(found.state.current)
    start, end = moment(found.time.start), moment(found.time.end)
    limit = whole(found.time.limit)
    if end is None and start is not None and limit and not state.is_pending:
        end = _later(start, limit)
    allocated, asked = _booked(found.tres.allocated), _booked(found.tres.requested)
    holds = state.holds_node
    return Job(
        record=SlurmJob(
            job_id=found.job_id,
            state=state,
            name=found.name or "",
            user=found.user or "",
            account=found.account or "",
            partition=found.partition or "",
            state_reason=found.state.reason or "",
            nodes=() if found.nodes == _NOWHERE else host_words(found.nodes),
            array_job_id=whole(found.array.job_id) or None,
            array_task_id=whole(found.array.task_id),
            node_count=count(found.allocation_nodes),
            is_held=found.hold,
            submit_time=moment(found.time.submission),
            start_time=None if state.is_pending else start,
            end_time=None if state.is_pending else end,
        ),
        standard_output=found.stdout or "",
        standard_error=found.stderr or "",
        cpus=allocated.get("cpu") or asked.get("cpu") or None,
        memory=allocated.get("mem") or asked.get("mem"),
        cpus_allocated=allocated.get("cpu", 0) if holds else 0,
        memory_allocated=allocated.get("mem", 0) if holds else 0,
    )


def _later(start: datetime, minutes: int) -> datetime | None:
    try:
        return start + timedelta(minutes=minutes)
    except OverflowError:
        return None


def _booked(found: Iterable[_Tres] | None) -> dict[str, int]:
    """slurmdbd counts memory in MiB, and marks what it does not know with a negative number."""
    amounts: dict[str, int] = {}
    for one in found or ():
        amount = whole(one.count)
        if one.type and amount is not None and amount > 0:
            amounts[one.type] = amount * (MIB if one.type == "mem" else 1)
    return amounts


class _WireRpc(wire.Record):
    message_type: Text = None
    user: Text = None
    user_id: Number = None
    count: Number = None
    total_time: Number = None


class _Rpcs(wire.Record):
    rpcs_by_message_type: list[_WireRpc] | None = None
    rpcs_by_user: list[_WireRpc] | None = None
    req_time: Number = None


class DiagReply(Envelope):
    statistics: dict[str, Any] | None = None


def diagnosis(statistics: Mapping[str, Any], counters: Mapping[str, float]) -> Diagnosis:
    """With the lists, which are lost among plain counters."""
    found = wire.convert({key: statistics.get(key) for key in _Rpcs.__struct_fields__}, _Rpcs)
    is_backfilling = statistics.get("bf_active")
    return Diagnosis(
        counters={**counters, "bf_active": float(is_backfilling is True)},
        rpcs=tuple(_rpc(one.message_type or "", one) for one in found.rpcs_by_message_type or ()),
        user_rpcs=tuple(_rpc(one.user or "", one) for one in found.rpcs_by_user or ()),
        asked_at=moment(found.req_time),
    )


def _rpc(name: str, found: _WireRpc) -> Rpc:
    user = whole(found.user_id)
    return Rpc(
        name=name,
        count=count(found.count),
        seconds=count(found.total_time) / 1e6,
        user_id="" if user is None else str(user),
    )


class _Private(wire.Record):
    private_data: Words = wire.field(name="PrivateData", default=None)


class PrivateReply(Envelope):
    slurm_conf: _Private | None = None


def private_data(found: PrivateReply) -> tuple[str, ...]:
    """What slurm.conf hides from users."""
    return words(found.slurm_conf.private_data) if found.slurm_conf else ()


@lru_cache(maxsize=4096)
def amounts(written: str) -> Mapping[str, int]:
    """A list of resources; nothing where it makes no sense. Thousands of jobs ask for the same."""
    try:
        return tres(written)
    except TresError:
        return {}


def gpus_of(written: str) -> int:
    """The GPUs in a list of resources. Where only types are listed, those of all types."""
    found = amounts(written)
    typed = sum(amount for name, amount in found.items() if name.startswith("gres/gpu:"))
    return found.get("gres/gpu", 0) or typed


@lru_cache(maxsize=4096)
def _gres_gpus(written: str) -> int:
    try:
        return gres_counts(gres(written)).get("gpu", 0)
    except TresError:
        return 0


def _bytes(mib: Number) -> int | None:
    found = whole(mib)
    return None if found is None else found * MIB
