"""Nodes, jobs and slurmctld's calls, under the names and labels of Soperator's exporter."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from slurm_operator.exporter import classes
from slurm_operator.exporter.facts import Facts, Place
from slurm_operator.exporter.records import Diagnosis, Job, Node
from slurm_operator.exporter.table import Family, Row, counter, gauge, histogram
from slurm_operator.exporter.tallies import Tallies, bool_text, state_labels
from slurm_operator.slurm.states import NodeBase, NodeFlag, NodeState

_STATE: Final = ("node_name", "state_base", "state_is_drain", "state_is_maintenance", "state_is_reserved")

# The flags that are "true" or no label at all.
_FLAGS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("state_is_completing", (NodeFlag.COMPLETING,)),
    ("state_is_fail", (NodeFlag.FAIL,)),
    ("state_is_planned", (NodeFlag.PLANNED,)),
    ("state_is_not_responding", (NodeFlag.NOT_RESPONDING,)),
    ("state_is_invalid", (NodeBase.INVALID, NodeFlag.INVALID_REG)),
    ("state_is_cloud", (NodeFlag.CLOUD,)),
    ("state_is_power_down", (NodeFlag.POWER_DOWN,)),
    ("state_is_power_drain", (NodeFlag.POWER_DRAIN,)),
    ("state_is_powered_down", (NodeFlag.POWERED_DOWN,)),
    ("state_is_powering_down", (NodeFlag.POWERING_DOWN,)),
    ("state_is_powering_up", (NodeFlag.POWERING_UP,)),
    ("state_is_power_up", (NodeFlag.POWER_UP,)),
)

_NODE_INFO: Final = (
    "node_name",
    "instance_id",
    *_STATE[1:],
    *(label for label, _ in _FLAGS),
    "is_unavailable",
    "reservation_name",
    "address",
    "reason",
    "comment",
)
_RESERVATION_CHARACTERS: Final = 50

_JOB_INFO: Final = (
    "job_id",
    "job_state",
    "job_state_reason",
    "slurm_partition",
    "job_name",
    "user_name",
    "user_mail",
    "user_id",
    "standard_error",
    "standard_output",
    "array_job_id",
    "array_task_id",
    "submit_time",
    "start_time",
    "end_time",
    "finished_time",
)

# (name behind slurm_node_, field of Node, what it is)
_AMOUNTS: Final = (
    ("cpus_total", "cpus", "CPUs of the node."),
    ("cpus_allocated", "cpus_allocated", "CPUs that jobs have."),
    ("cpus_idle", "cpus_idle", "CPUs that no job has."),
    ("cpus_effective", "cpus_effective", "CPUs that jobs may have."),
    ("memory_total_bytes", "memory", "Memory of the node."),
    ("memory_allocated_bytes", "memory_allocated", "Memory that jobs have."),
    ("memory_free_bytes", "memory_free", "Memory that the node's system calls free."),
    ("memory_effective_bytes", "memory_effective", "Memory that jobs may have."),
)


def families(
    facts: Facts, tallies: Tallies, now: datetime, *, people: bool, aliases: bool
) -> Iterator[Family]:
    """Everything that Soperator's exporter shows. What was never read is not there."""
    if facts.nodes is not None:
        yield from _of_nodes(facts.nodes, facts.places)
        yield from _of_tallies(tallies)
    if facts.jobs is not None:
        yield from _of_jobs(facts, now, people=people)
    if facts.diagnosis is not None:
        yield from _of_controller(facts.diagnosis, people=people)
        if aliases:
            yield from _aliases(facts.diagnosis)


def _of_nodes(nodes: Iterable[Node], places: Mapping[str, Place]) -> Iterator[Family]:
    nodes = sorted(nodes, key=lambda node: node.record.name)
    yield gauge(
        "slurm_node_info", "A Slurm node and its state.", _NODE_INFO, ((_node(node), 1) for node in nodes)
    )
    for name, field, about in _AMOUNTS:
        rows = (((node.record.name,), getattr(node, field)) for node in nodes)
        known = [(labels, found) for labels, found in rows if found is not None]
        yield gauge(f"slurm_node_{name}", about, ("node_name",), known)
    yield gauge(
        "slurm_node_partition",
        "The partitions of a node.",
        ("node_name", "partition"),
        (((node.record.name, one), 1) for node in nodes for one in node.record.partitions),
    )
    grouped = [(node.record, place_of(node, places)) for node in nodes]
    yield gauge(
        "slurm_node_nvlink_instance_group",
        "The NVLink group of a node's machine.",
        ("node_name", "instance_id", "nvlink_instance_group", "nodeset_name"),
        (
            ((record.name, record.instance_id, place.nvlink_group, place.nodeset), 1)
            for record, place in grouped
            if place.nvlink_group
        ),
    )


def place_of(node: Node, places: Mapping[str, Place]) -> Place:
    """Where a Slurm node is: what its Kubernetes node says, or else the operator's comment."""
    info = classes.pod_info(node.record.comment)
    found = places.get(info.node if info is not None else node.record.name, Place())
    if found.nodeset or info is None:
        return found
    return Place(found.nvlink_group, info.node_set_name)


def _node(node: Node) -> tuple[str, ...]:
    record = node.record
    name, *state = state_labels(record.name, record.state)
    return (
        name,
        record.instance_id,
        *state,
        *(_flag(record.state, words) for _, words in _FLAGS),
        "true" if classes.is_unavailable(record.state) else "",
        record.reservation[:_RESERVATION_CHARACTERS],
        record.address,
        record.reason,
        record.comment,
    )


def _flag(state: NodeState, words: tuple[str, ...]) -> str:
    return "" if state.words.isdisjoint(words) else bool_text(True)


def _of_tallies(tallies: Tallies) -> Iterator[Family]:
    yield counter(
        "slurm_node_gpu_seconds_total",
        "GPUs of a node times the seconds that it was in a state.",
        _STATE,
        sorted(tallies.gpu_seconds.items()),
    )
    yield counter(
        "slurm_node_fails_total",
        "Times that a node went down or was drained.",
        (*_STATE, "reason"),
        sorted(tallies.fails.items()),
    )
    yield histogram(
        "slurm_node_unavailability_duration_seconds",
        "How long a node was unavailable.",
        ("node_name",),
        (((name,), found) for name, found in sorted(tallies.unavailable.items())),
    )
    yield histogram(
        "slurm_node_draining_duration_seconds",
        "How long a node took to drain.",
        ("node_name",),
        (((name,), found) for name, found in sorted(tallies.draining.items())),
    )


def _of_jobs(facts: Facts, now: datetime, *, people: bool) -> Iterator[Family]:
    jobs = by_importance(facts.jobs or ())
    slurm_now = facts.slurm_time(now)
    yield gauge("slurm_job_info", "A job and its state.", _JOB_INFO, ((_job(job, people), 1) for job in jobs))
    yield gauge(
        "slurm_node_job",
        "The nodes of a job.",
        ("job_id", "node_name", "nvlink_instance_group", "nodeset_name"),
        _node_jobs(jobs, facts),
    )
    durations = ((_id(job), duration(job, slurm_now)) for job in jobs)
    yield _of_each("slurm_job_duration_seconds", "How long a job has run.", durations)
    yield _of_each("slurm_job_cpus", "CPUs of a job.", ((_id(job), job.cpus) for job in jobs))
    yield _of_each("slurm_job_memory_bytes", "Memory of a job.", ((_id(job), job.memory) for job in jobs))


def _of_each(name: str, about: str, found: Iterable[tuple[str, float | None]]) -> Family:
    return gauge(name, about, ("job_id",), (((job,), value) for job, value in found if value is not None))


def _id(job: Job) -> str:
    return str(job.record.job_id)


def by_importance(jobs: Iterable[Job]) -> list[Job]:
    """Running ones, then waiting ones, then those that ended, and the newest first: a cap cuts the others."""
    return sorted(jobs, key=lambda job: (_rank(job), -job.record.job_id))


def _rank(job: Job) -> int:
    state = job.record.state
    return 0 if state.holds_node else 1 if state.is_pending else 2


def _job(job: Job, people: bool) -> tuple[str, ...]:
    record = job.record
    personal = (
        (record.name, record.user, job.mail, job.user_id, job.standard_error, job.standard_output)
        if people
        else ("",) * 6
    )
    return (
        str(record.job_id),
        classes.job_state(record.state),
        record.state_reason,
        record.partition,
        *personal,
        str(record.array_job_id or ""),
        "" if record.array_task_id is None else str(record.array_task_id),
        _seconds(record.submit_time),
        _seconds(record.start_time),
        _seconds(record.end_time),
        _seconds(record.end_time) if record.state.is_finished else "",
    )


def _seconds(moment: datetime | None) -> str:
    return "" if moment is None else str(int(moment.timestamp()))


def _node_jobs(jobs: Iterable[Job], facts: Facts) -> Iterator[Row]:
    places = {node.record.name: place_of(node, facts.places) for node in facts.nodes or ()}
    nowhere = Place()
    for job in jobs:
        for name in dict.fromkeys(job.record.nodes):
            place = places.get(name, nowhere)
            yield (_id(job), name, place.nvlink_group, place.nodeset), 1


def duration(job: Job, slurm_now: datetime) -> float | None:
    """How long it has run, or ran; None where that cannot be told."""
    record = job.record
    if record.start_time is None:
        return None
    end = record.end_time if record.state.is_finished else slurm_now if record.state.is_running else None
    seconds = (end - record.start_time).total_seconds() if end is not None else 0.0
    return seconds if seconds > 0 else None


def _of_controller(found: Diagnosis, *, people: bool) -> Iterator[Family]:
    calls, seconds = "Calls that slurmctld answered", "Time that slurmctld took to answer"
    yield counter(
        "slurm_controller_rpc_calls_total",
        f"{calls}, by kind.",
        ("message_type",),
        _positive(((rpc.name,), rpc.count) for rpc in found.rpcs),
    )
    yield counter(
        "slurm_controller_rpc_duration_seconds_total",
        f"{seconds}, by kind of call.",
        ("message_type",),
        _positive(((rpc.name,), rpc.seconds) for rpc in found.rpcs),
    )
    if people:
        yield counter(
            "slurm_controller_rpc_user_calls_total",
            f"{calls}, by user.",
            ("user", "user_id"),
            _positive(((rpc.name, rpc.user_id), rpc.count) for rpc in found.user_rpcs),
        )
        yield counter(
            "slurm_controller_rpc_user_duration_seconds_total",
            f"{seconds}, by user.",
            ("user", "user_id"),
            _positive(((rpc.name, rpc.user_id), rpc.seconds) for rpc in found.user_rpcs),
        )
    threads = found.counters.get("server_thread_count")
    if threads is not None:
        yield gauge("slurm_controller_server_thread_count", "Threads of slurmctld.", (), [((), threads)])


def _aliases(found: Diagnosis) -> Iterator[Family]:
    yield counter(
        "slurm_rpc_calls_total",
        "Same as slurm_controller_rpc_calls_total.",
        ("method",),
        _positive(((rpc.name,), rpc.count) for rpc in found.rpcs),
    )
    yield counter(
        "slurm_rpc_duration_seconds_total",
        "Same as slurm_controller_rpc_duration_seconds_total.",
        ("method",),
        _positive(((rpc.name,), rpc.seconds) for rpc in found.rpcs),
    )


def _positive(rows: Iterable[Row]) -> list[Row]:
    """In order of their labels, each once: a name that came twice would spoil the page."""
    summed: dict[tuple[str, ...], float] = {}
    for labels, found in rows:
        summed[labels] = summed.get(labels, 0.0) + found
    return sorted((labels, found) for labels, found in summed.items() if found > 0)
