"""The families of Slinky's slurm-exporter, under its names and with its values.

All of them are gauges there, whatever their names end with. What it calls bytes are MiB, and what it calls
seconds of a scheduling cycle are microseconds. Dashboards were made for those values, so they stay.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from slurm_operator.exporter.facts import Facts
from slurm_operator.exporter.records import Job, Node
from slurm_operator.exporter.table import Family, gauge
from slurm_operator.slurm.tres import MIB

_Labels = tuple[str, ...]

_JOB_STATES: Final = {
    "bootfail": "BOOT_FAIL",
    "cancelled": "CANCELLED",
    "completed": "COMPLETED",
    "deadline": "DEADLINE",
    "failed": "FAILED",
    "pending": "PENDING",
    "preempted": "PREEMPTED",
    "running": "RUNNING",
    "suspended": "SUSPENDED",
    "timeout": "TIMEOUT",
    "nodefail": "NODE_FAIL",
    "outofmemory": "OUT_OF_MEMORY",
    "completing": "COMPLETING",
    "configuring": "CONFIGURING",
    "powerupnode": "POWER_UP_NODE",
    "stageout": "STAGE_OUT",
}
_NODE_STATES: Final = {
    "allocated": "ALLOCATED",
    "down": "DOWN",
    "error": "ERROR",
    "future": "FUTURE",
    "idle": "IDLE",
    "mixed": "MIXED",
    "unknown": "UNKNOWN",
    "completing": "COMPLETING",
    "drain": "DRAIN",
    "fail": "FAIL",
    "maintenance": "MAINTENANCE",
    "notresponding": "NOT_RESPONDING",
    "planned": "PLANNED",
    "rebootrequested": "REBOOT_REQUESTED",
    "reserved": "RESERVED",
}
# (end of the name, field of Node, what one of it counts for)
_AMOUNTS: Final = (
    ("cpus_total", "cpus", 1, "CPUs."),
    ("cpus_effective_total", "cpus_effective", 1, "CPUs that jobs may have."),
    ("cpus_alloc_total", "cpus_allocated", 1, "CPUs that jobs have."),
    ("cpus_idle_total", "cpus_idle", 1, "CPUs that no job has."),
    ("memory_bytes", "memory", MIB, "Memory in MiB."),
    ("memory_effective_bytes", "memory_effective", MIB, "Memory in MiB that jobs may have."),
    ("memory_alloc_bytes", "memory_allocated", MIB, "Memory in MiB that jobs have."),
    ("memory_free_bytes", "memory_free", MIB, "Memory in MiB that is free."),
)
# Name of the metric to slurmctld's name for it.
_DIAGNOSIS: Final = {
    "slurm_scheduler_cycle_depth_total": "schedule_cycle_depth",
    "slurm_scheduler_cycle_last_seconds": "schedule_cycle_last",
    "slurm_scheduler_cycle_max_seconds": "schedule_cycle_max",
    "slurm_scheduler_cycle_mean_seconds": "schedule_cycle_mean",
    "slurm_scheduler_cycle_depth_mean_total": "schedule_cycle_mean_depth",
    "slurm_scheduler_cycle_perminute_total": "schedule_cycle_per_minute",
    "slurm_scheduler_cycle_sum_seconds_total": "schedule_cycle_sum",
    "slurm_scheduler_cycle_total": "schedule_cycle_total",
    "slurm_scheduler_queue_total": "schedule_queue_length",
    "slurm_scheduler_defaultqueuedepth_total": "schedule_exit.default_queue_depth",
    "slurm_scheduler_endjobqueue_total": "schedule_exit.end_job_queue",
    "slurm_scheduler_licenses_total": "schedule_exit.licenses",
    "slurm_scheduler_maxjobstart_total": "schedule_exit.max_job_start",
    "slurm_scheduler_maxrpc_total": "schedule_exit.max_rpc_cnt",
    "slurm_scheduler_maxschedtime_total": "schedule_exit.max_sched_time",
    "slurm_scheduler_jobs_stats_timestamp": "job_states_ts",
    "slurm_scheduler_jobs_canceled_total": "jobs_canceled",
    "slurm_scheduler_jobs_completed_total": "jobs_completed",
    "slurm_scheduler_jobs_failed_total": "jobs_failed",
    "slurm_scheduler_jobs_pending_total": "jobs_pending",
    "slurm_scheduler_jobs_running_total": "jobs_running",
    "slurm_scheduler_jobs_started_total": "jobs_started",
    "slurm_scheduler_jobs_submitted_total": "jobs_submitted",
    "slurm_scheduler_agent_total": "agent_count",
    "slurm_scheduler_agent_queue_total": "agent_queue_size",
    "slurm_scheduler_agent_thread_total": "agent_thread_count",
    "slurm_scheduler_thread_total": "server_thread_count",
    "slurm_scheduler_dbdagentqueue_total": "dbd_agent_queue_size",
    "slurm_bfscheduler_active_bool": "bf_active",
    "slurm_bfscheduler_backfilledhetjobs_total": "bf_backfilled_het_jobs",
    "slurm_bfscheduler_backfilledjobs_total": "bf_backfilled_jobs",
    "slurm_bfscheduler_cycle_total": "bf_cycle_counter",
    "slurm_bfscheduler_cycle_seconds": "bf_cycle_last",
    "slurm_bfscheduler_cycle_max_seconds": "bf_cycle_max",
    "slurm_bfscheduler_cycle_mean_seconds": "bf_cycle_mean",
    "slurm_bfscheduler_cycle_sum_seconds": "bf_cycle_sum",
    "slurm_bfscheduler_depth_mean_total": "bf_depth_mean",
    "slurm_bfscheduler_depth_try_total": "bf_depth_mean_try",
    "slurm_bfscheduler_depth_sum_total": "bf_depth_sum",
    "slurm_bfscheduler_depth_trysum_total": "bf_depth_try_sum",
    "slurm_bfscheduler_lastbackfilledjobs_total": "bf_last_backfilled_jobs",
    "slurm_bfscheduler_lastdepth_total": "bf_last_depth",
    "slurm_bfscheduler_lastdepthtry_total": "bf_last_depth_try",
    "slurm_bfscheduler_queue_total": "bf_queue_len",
    "slurm_bfscheduler_queue_mean_total": "bf_queue_len_mean",
    "slurm_bfscheduler_queue_sum_total": "bf_queue_len_sum",
    "slurm_bfscheduler_table_total": "bf_table_size",
    "slurm_bfscheduler_tablemean_total": "bf_table_size_mean",
    "slurm_bfscheduler_tablesum_total": "bf_table_size_sum",
    "slurm_bfscheduler_lastcycle_timestamp": "bf_when_last_cycle",
    "slurm_bfscheduler_maxjobstart_total": "bf_exit.bf_max_job_start",
    "slurm_bfscheduler_maxjobtest_total": "bf_exit.bf_max_job_test",
    "slurm_bfscheduler_maxtime_total": "bf_exit.bf_max_time",
    "slurm_bfscheduler_nodespace_total": "bf_exit.bf_node_space_size",
    "slurm_bfscheduler_endjobqueue_total": "bf_exit.end_job_queue",
    "slurm_bfscheduler_statechanged_total": "bf_exit.state_changed",
}


def families(facts: Facts, *, people: bool) -> Iterator[Family]:
    """Everything that Slinky's exporter shows. What was never read is not there."""
    if facts.jobs is not None:
        yield from _of_jobs("slurm", (), {(): list(facts.jobs)})
        by_account = _grouped(facts.jobs, lambda job: [(job.record.account,)])
        yield from _of_jobs("slurm_account", ("account",), by_account)
        if people:
            by_user = _grouped(facts.jobs, lambda job: [(job.user_id, job.record.user)])
            yield from _of_jobs("slurm_user", ("userid", "username"), by_user)
        by_partition: dict[_Labels, list[Job]] = {(name,): [] for name in facts.partitions}
        by_partition |= _grouped(
            facts.jobs, lambda job: [(one,) for one in job.record.partition.split(",") if one]
        )
        yield from _of_jobs("slurm_partition", ("partition",), by_partition)
        yield _most_nodes(by_partition)
    if facts.nodes is not None:
        yield from _of_nodes("slurm_nodes", (), {(): list(facts.nodes)})
        each: dict[_Labels, list[Node]] = {(node.record.name,): [node] for node in facts.nodes}
        yield from _amounts("slurm_node", ("node",), each)
        in_partition: dict[_Labels, list[Node]] = {(name,): [] for name in facts.partitions}
        for node in facts.nodes:
            for name in node.record.partitions:
                in_partition.setdefault((name,), []).append(node)
        yield from _of_nodes("slurm_partition_nodes", ("partition",), in_partition)
        yield from _amounts("slurm_partition_nodes", ("partition",), in_partition)
    if facts.diagnosis is not None:
        yield from _of_diagnosis(facts.diagnosis.counters)


def _grouped(jobs: Iterable[Job], keys: Callable[[Job], list[_Labels]]) -> dict[_Labels, list[Job]]:
    groups: dict[_Labels, list[Job]] = {}
    for job in jobs:
        for key in keys(job):
            groups.setdefault(key, []).append(job)
    return groups


def _of_jobs(prefix: str, labels: _Labels, groups: Mapping[_Labels, list[Job]]) -> Iterator[Family]:
    def family(name: str, about: str, of: Callable[[list[Job]], float]) -> Family:
        rows = ((key, of(groups[key])) for key in sorted(groups))
        return gauge(f"{prefix}_jobs_{name}", about, labels, rows)

    yield family("total", "Jobs.", len)
    for name, word in _JOB_STATES.items():
        yield family(
            f"{name}_total",
            f"Jobs that are {word}.",
            lambda jobs, word=word: sum(word in job.record.state.words for job in jobs),  # type: ignore[misc]
        )
    yield family("hold_total", "Jobs that are held.", lambda jobs: sum(job.record.is_held for job in jobs))
    yield family("cpus_alloc_total", "CPUs of jobs.", lambda jobs: sum(job.cpus_allocated for job in jobs))
    yield family(
        "memory_alloc_bytes",
        "Memory of jobs in MiB.",
        lambda jobs: sum(job.memory_allocated for job in jobs) // MIB,
    )


def _most_nodes(groups: Mapping[_Labels, list[Job]]) -> Family:
    def most(jobs: list[Job]) -> int:
        return max((job.record.node_count for job in jobs if job.record.state.is_pending), default=0)

    return gauge(
        "slurm_partition_jobs_pending_maxnodecount_total",
        "The most nodes that a waiting job asks for.",
        ("partition",),
        ((key, most(groups[key])) for key in sorted(groups)),
    )


def _of_nodes(prefix: str, labels: _Labels, groups: Mapping[_Labels, list[Node]]) -> Iterator[Family]:
    yield gauge(f"{prefix}_total", "Nodes.", labels, ((key, len(groups[key])) for key in sorted(groups)))
    for name, word in _NODE_STATES.items():
        rows = [(key, sum(word in node.record.state.words for node in groups[key])) for key in sorted(groups)]
        yield gauge(f"{prefix}_{name}_total", f"Nodes that are {word}.", labels, rows)


def _amounts(prefix: str, labels: _Labels, groups: Mapping[_Labels, list[Node]]) -> Iterator[Family]:
    for name, field, unit, about in _AMOUNTS:
        rows = [
            (key, sum((getattr(node, field) or 0) // unit for node in groups[key])) for key in sorted(groups)
        ]
        yield gauge(f"{prefix}_{name}", about, labels, rows)


def _of_diagnosis(counters: Mapping[str, float]) -> Iterator[Family]:
    for name, key in _DIAGNOSIS.items():
        about = f"{key} of slurmctld's diagnosis, as it says it."
        yield gauge(name, about, (), [((), counters.get(key, 0))])
