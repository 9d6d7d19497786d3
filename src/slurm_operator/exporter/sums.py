"""Sums that people alert on: how much of what is in which state, however many nodes and jobs there are."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from slurm_operator.exporter import classes
from slurm_operator.exporter.facts import Facts
from slurm_operator.exporter.records import Job, Node
from slurm_operator.exporter.table import Family, counter, gauge, histogram
from slurm_operator.exporter.tallies import Tallies

_Sums = defaultdict[tuple[str, ...], float]

# (name behind slurm_pool_, what jobs have of it, what there is)
_RESOURCES: Final = (
    ("cpus", "cpus_allocated", "cpus_effective", "CPUs"),
    ("memory_bytes", "memory_allocated", "memory_effective", "Memory"),
    ("gpus", "gpus_allocated", "gpus", "GPUs"),
)


def families(facts: Facts, tallies: Tallies, now: datetime) -> Iterator[Family]:
    slurm_now = facts.slurm_time(now)
    if facts.jobs is not None:
        yield from _of_queue(facts.jobs, slurm_now)
        yield histogram(
            "slurm_queue_wait_seconds",
            "How long jobs waited from submission to start, of those that started since the exporter did.",
            ("partition",),
            (((name,), found) for name, found in sorted(tallies.waits.items())),
        )
    if facts.nodes is not None:
        yield from _of_pools(facts.nodes, slurm_now)
        yield counter(
            "slurm_pool_node_seconds_total",
            "Nodes of a pool times the seconds that they were in a state, by who keeps them there.",
            ("pool", "state", "reason_class"),
            sorted(tallies.node_seconds.items()),
        )
        yield _pods(facts.nodes)


def _of_queue(jobs: Iterable[Job], slurm_now: datetime) -> Iterator[Family]:
    counted, oldest = _Sums(float), _Sums(float)
    for job in jobs:
        record = job.record
        why = classes.reason_class(record.state_reason) if record.state.is_pending else "none"
        # A job may be waiting for any of several partitions; it counts in each.
        for partition in record.partition.split(","):
            counted[classes.job_state(record.state), partition, why] += 1
            if record.state.is_pending and record.submit_time is not None:
                waited = max(0.0, (slurm_now - record.submit_time).total_seconds())
                oldest[partition, why] = max(oldest[partition, why], waited)
    yield gauge(
        "slurm_queue_jobs",
        "Jobs, by state, partition and kind of reason.",
        ("state", "partition", "reason_class"),
        sorted(counted.items()),
    )
    yield gauge(
        "slurm_queue_oldest_pending_seconds",
        "How long the oldest waiting job has waited since its submission.",
        ("partition", "reason_class"),
        sorted(oldest.items()),
    )


def _of_pools(nodes: Iterable[Node], slurm_now: datetime) -> Iterator[Family]:
    nodes = list(nodes)
    counted, oldest = _Sums(float), _Sums(float)
    for node in nodes:
        record, pool = node.record, classes.pool(node.record)
        counted[pool, classes.state_class(record.state)] += 1
        if record.state.is_drain and record.reason_changed_at is not None:
            age = max(0.0, (slurm_now - record.reason_changed_at).total_seconds())
            oldest[classes.owner(record), pool] = max(oldest[classes.owner(record), pool], age)
    about = "Slurm nodes of a pool, by state."
    yield gauge("slurm_pool_nodes", about, ("pool", "state"), sorted(counted.items()))
    for name, used, total, what in _RESOURCES:
        yield _of_resource(nodes, name, used, total, what)
    yield gauge(
        "slurm_pool_oldest_drain_seconds",
        "Age of the oldest drain, by who made it: operator, slurm, user.",
        ("owner", "pool"),
        sorted(oldest.items()),
    )


def _of_resource(nodes: Iterable[Node], name: str, used: str, total: str, what: str) -> Family:
    sums = _Sums(float)
    for node in nodes:
        has, allocated = getattr(node, total) or 0, getattr(node, used) or 0
        if has:
            pool, state = classes.pool(node.record), classes.state_class(node.record.state)
            sums[pool, "allocated"] += allocated
            sums[pool, classes.UNUSED[state]] += max(0, has - allocated)
    about = f"{what} of a pool: allocated, idle, drained, down."
    return gauge(f"slurm_pool_{name}", about, ("pool", "state"), sorted(sums.items()))


def _pods(nodes: Iterable[Node]) -> Family:
    found = ((node.record.name, classes.pod_info(node.record.comment)) for node in nodes)
    rows = (
        ((name, info.node_set_name, info.namespace, info.pod_name, info.node), 1.0)
        for name, info in found
        if info is not None
    )
    return gauge(
        "slurm_node_pod_info",
        "Which pod on which Kubernetes node a Slurm node is.",
        ("node_name", "pool", "namespace", "pod", "kube_node"),
        sorted(rows),
    )
