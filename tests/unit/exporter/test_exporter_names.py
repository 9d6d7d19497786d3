"""Every family of the two exporters that came before, field by field: name, type and labels are the same here.

Each of our series has one label more, `cluster`. The tables say what theirs show; what differs is said beside it.
"""

import re

import click
import pytest

from slurm_operator.cli.exporter import exporter
from slurm_operator.exporter.collecting import Collector, Plan
from slurm_operator.exporter.facts import Facts, Place
from slurm_operator.exporter.options import Compat, Options
from slurm_operator.exporter.page import table
from slurm_operator.exporter.table import Family, Table
from slurm_operator.exporter.tallies import DURATIONS, Tallies
from testing.virtual_time import FakeClock
from unit.exporter.pages import NOW, diag, jobs, nodes, of, page, series
from unit.exporter.test_exporter_flags import settings
from unit.exporter.test_exporter_pages import COMMENT, tallied

STATE = "node_name state_base state_is_drain state_is_maintenance state_is_reserved"
FLAGS = "completing fail planned not_responding invalid cloud power_down power_drain powered_down powering_down powering_up power_up"
NODE_INFO = " ".join(
    [
        "node_name instance_id state_base state_is_drain state_is_maintenance state_is_reserved",
        *(f"state_is_{flag}" for flag in FLAGS.split()),
        "is_unavailable reservation_name address reason comment",
    ]
)
JOB_INFO = (
    "job_id job_state job_state_reason slurm_partition job_name user_name user_mail user_id standard_error standard_output "
    "array_job_id array_task_id submit_time start_time end_time finished_time"
)

# Soperator's exporter, port 8080: (name, type, labels).
SOPERATOR = [
    ("slurm_node_info", "gauge", NODE_INFO),
    ("slurm_node_cpus_total", "gauge", "node_name"),
    ("slurm_node_cpus_allocated", "gauge", "node_name"),
    ("slurm_node_cpus_idle", "gauge", "node_name"),
    ("slurm_node_cpus_effective", "gauge", "node_name"),
    ("slurm_node_memory_total_bytes", "gauge", "node_name"),
    ("slurm_node_memory_allocated_bytes", "gauge", "node_name"),
    ("slurm_node_memory_free_bytes", "gauge", "node_name"),
    ("slurm_node_memory_effective_bytes", "gauge", "node_name"),
    ("slurm_node_partition", "gauge", "node_name partition"),
    ("slurm_node_nvlink_instance_group", "gauge", "node_name instance_id nvlink_instance_group nodeset_name"),
    ("slurm_job_info", "gauge", JOB_INFO),
    ("slurm_node_job", "gauge", "job_id node_name nvlink_instance_group nodeset_name"),
    ("slurm_job_duration_seconds", "gauge", "job_id"),
    ("slurm_job_cpus", "gauge", "job_id"),
    ("slurm_job_memory_bytes", "gauge", "job_id"),
    ("slurm_node_gpu_seconds_total", "counter", STATE),
    ("slurm_node_fails_total", "counter", f"{STATE} reason"),
    ("slurm_node_unavailability_duration_seconds", "histogram", "node_name"),
    ("slurm_node_draining_duration_seconds", "histogram", "node_name"),
    ("slurm_controller_rpc_calls_total", "counter", "message_type"),
    ("slurm_controller_rpc_duration_seconds_total", "counter", "message_type"),
    ("slurm_controller_rpc_user_calls_total", "counter", "user user_id"),
    ("slurm_controller_rpc_user_duration_seconds_total", "counter", "user user_id"),
    ("slurm_controller_server_thread_count", "gauge", ""),
]

# Port 8081 of the same.
SOPERATOR_ITSELF = [
    ("slurm_exporter_collection_duration_seconds", "gauge", ""),
    ("slurm_exporter_collection_attempts_total", "counter", ""),
    ("slurm_exporter_collection_failures_total", "counter", ""),
    ("slurm_exporter_collector_duration_seconds", "gauge", "collector"),
    ("slurm_exporter_collector_errors_total", "counter", "collector"),
    ("slurm_exporter_collector_inflight", "gauge", "collector"),
    ("slurm_exporter_collector_skipped_total", "counter", "collector"),
    ("slurm_exporter_metrics_requests_total", "counter", ""),
    ("slurm_exporter_metrics_exported", "gauge", ""),
]
OURS_ITSELF = {"slurm_exporter_last_success_timestamp_seconds", "slurm_exporter_series_dropped"}

ALIASES = [
    ("slurm_rpc_calls_total", "counter", "method"),
    ("slurm_rpc_duration_seconds_total", "counter", "method"),
]
ALIASES_ITSELF = [
    ("soperator_metrics_requests_total", "counter", ""),
    ("scollector_collection_errors_total", "counter", ""),
]

BUCKETS = "30 60 300 600 1800 3600 7200 14400 28800 43200 86400 172800 259200 604800 1209600 2592000"


def totals(words: str) -> str:
    return " ".join(f"{word}_total" for word in words.split())


# Slinky's exporter, all of it gauges: (begin of the name, its ends, labels).
JOBS = "total cpus_alloc_total memory_alloc_bytes " + totals(
    "bootfail cancelled completed deadline failed pending preempted running suspended timeout nodefail outofmemory "
    "completing configuring powerupnode stageout hold"
)
NODES = "total " + totals(
    "allocated down error future idle mixed unknown completing drain fail maintenance notresponding planned rebootrequested reserved"
)
AMOUNTS = (
    totals("cpus cpus_effective cpus_alloc cpus_idle")
    + " memory_bytes memory_effective_bytes memory_alloc_bytes memory_free_bytes"
)
SCHEDULER = (
    "cycle_last_seconds cycle_max_seconds cycle_mean_seconds cycle_sum_seconds_total jobs_stats_timestamp "
    + totals("cycle cycle_depth cycle_depth_mean cycle_perminute queue")
    + " "
    + totals("defaultqueuedepth endjobqueue licenses maxjobstart maxrpc maxschedtime")
    + " "
    + totals("jobs_canceled jobs_completed jobs_failed jobs_pending jobs_running jobs_started jobs_submitted")
    + " "
    + totals("agent agent_queue agent_thread thread dbdagentqueue")
)
BACKFILL = (
    "active_bool lastcycle_timestamp cycle_seconds cycle_max_seconds cycle_mean_seconds cycle_sum_seconds "
    + totals("backfilledhetjobs backfilledjobs cycle lastbackfilledjobs lastdepth lastdepthtry")
    + " "
    + totals(
        "depth_mean depth_try depth_sum depth_trysum queue queue_mean queue_sum table tablemean tablesum"
    )
    + " "
    + totals("maxjobstart maxjobtest maxtime nodespace endjobqueue statechanged")
)
SLINKY = [
    ("slurm_jobs", JOBS, ""),
    ("slurm_account_jobs", JOBS, "account"),
    ("slurm_user_jobs", JOBS, "userid username"),
    ("slurm_partition_jobs", f"{JOBS} pending_maxnodecount_total", "partition"),
    ("slurm_nodes", NODES, ""),
    ("slurm_node", AMOUNTS, "node"),
    ("slurm_partition_nodes", f"{NODES} {AMOUNTS}", "partition"),
    ("slurm_scheduler", SCHEDULER, ""),
    ("slurm_bfscheduler", BACKFILL, ""),
]

# Flags of Soperator's exporter: (flag, default, variable).
SOPERATOR_FLAGS = [
    ("--cluster-name", None, "SLURM_EXPORTER_CLUSTER_NAME"),
    ("--cluster-namespace", "soperator", "SLURM_EXPORTER_CLUSTER_NAMESPACE"),
    ("--slurm-api-server", "http://localhost:6820", "SLURM_EXPORTER_SLURM_API_SERVER"),
    ("--collection-interval", "30s", "SLURM_EXPORTER_COLLECTION_INTERVAL"),
    ("--max-collector-inflight", 1, "SLURM_EXPORTER_MAX_COLLECTOR_INFLIGHT"),
    ("--job-source", "controller", "SLURM_EXPORTER_JOB_SOURCE"),
    ("--accounting-jobs-lookback", "1h", "SLURM_EXPORTER_ACCOUNTING_JOBS_LOOKBACK"),
    ("--metrics-bind-address", ":8080", "SLURM_EXPORTER_METRICS_BIND_ADDRESS"),
    ("--monitoring-bind-address", ":8081", "SLURM_EXPORTER_MONITORING_BIND_ADDRESS"),
    ("--log-format", "json", "SLURM_EXPORTER_LOG_FORMAT"),
    ("--log-level", "info", "SLURM_EXPORTER_LOG_LEVEL"),  # Theirs is debug.
    ("--scontrol-path", "scontrol", "SLURM_EXPORTER_SCONTROL_PATH"),
    ("--key-rotation-interval", "30m", "SLURM_EXPORTER_KEY_ROTATION_INTERVAL"),
    ("--kubeconfig-path", None, "SLURM_EXPORTER_KUBECONFIG_PATH"),
    ("--standalone", False, "SLURM_EXPORTER_STANDALONE"),
    ("--static-token", "", "SLURM_EXPORTER_TOKEN"),
]
LEVELS = "debug info warn error dpanic panic fatal"


def everything() -> Facts:
    """A cluster that has something to show in every family."""
    return Facts(
        nodes=nodes({"name": "gpu-3", "comment": COMMENT}),
        jobs=jobs({"nodes": "gpu-3"}),
        diagnosis=diag(),
        partitions=("all",),
        places={"kube-1": Place("nvl-9")},
    )


def families(compat: Compat, *, aliases: bool = False) -> list[Family]:
    options = Options(compat=compat, sums=False, aliases=aliases)
    return list(table(everything(), tallied(), NOW, options).families)


def itself(*, aliases: bool = False) -> list[Family]:
    options = Options(compat=Compat.SOPERATOR, aliases=aliases)
    return Collector(None, Plan("demo"), options, FakeClock()).self_families(Table())


def fields(found: list[Family]) -> list[tuple[str, str, str]]:
    return sorted((family.name, family.kind, " ".join(family.labels)) for family in found)


def test_the_families_of_soperators_exporter_are_there_with_their_types_and_labels():
    assert fields(families(Compat.SOPERATOR)) == sorted(SOPERATOR)
    without_people = [one for one in SOPERATOR if "user" not in one[2].split()]
    assert fields(families(Compat.NONE)) == sorted(without_people), "ours are the same, without users"


def test_what_soperators_exporter_says_of_itself_is_there():
    found = itself()

    assert fields([one for one in found if one.name not in OURS_ITSELF]) == sorted(SOPERATOR_ITSELF)
    assert {one.name for one in found} > OURS_ITSELF


def test_further_names_are_off_until_they_are_wanted():
    assert fields(families(Compat.SOPERATOR, aliases=True)) == sorted([*SOPERATOR, *ALIASES])
    added = {one.name for one in itself(aliases=True)} - {one.name for one in itself()}
    assert added == {name for name, _, _ in ALIASES_ITSELF}
    assert set(ALIASES_ITSELF) <= set(fields(itself(aliases=True)))


def test_the_families_of_slinkys_exporter_are_there_with_their_labels():
    theirs = [(f"{begin}_{end}", "gauge", labels) for begin, ends, labels in SLINKY for end in ends.split()]

    assert fields(families(Compat.SLINKY)) == sorted(theirs)


def test_each_series_has_the_labels_of_its_family_and_the_cluster():
    """An empty label is no label, so what a node or job does not have is not there."""
    always = {"slurm_node_info": set(STATE.split()), "slurm_job_info": set(JOB_INFO.split()[:4])}
    for compat in (Compat.SOPERATOR, Compat.SLINKY):
        known = {family.name: set(family.labels) for family in families(compat)}
        shown = series(page(everything(), Options(compat=compat, sums=False), tallied()))
        for name, pairs in shown:
            family = re.sub(r"_(bucket|sum|count)$", "", name) if name not in known else name
            has = {label for label, _ in pairs} - {"le"}
            assert "cluster" in has
            assert always.get(family, set()) <= has - {"cluster"} <= known[family], name


def test_durations_have_the_buckets_of_soperators_exporter():
    assert " ".join(f"{bound:.0f}" for bound in DURATIONS) == BUCKETS


@pytest.mark.parametrize("written", ["None assigned", "(null)", ""])
def test_a_job_without_nodes_is_on_none(written: str):
    found = series(page(Facts(nodes=nodes({}), jobs=jobs({"nodes": written})), Options()))

    assert of(found, "slurm_job_info")
    assert not of(found, "slurm_node_job")


@pytest.mark.parametrize(
    ("tres", "gpus", "seconds"),
    [
        pytest.param("cpu=8,mem=1T,gres/gpu=4", 4, 120, id="a total"),
        pytest.param("cpu=8,mem=64G,gres/gpu=4,gres/gpu:h100=4", 4, 120, id="a total and its types"),
        pytest.param("cpu=8,mem=100M,billing=8", 0, 0, id="none"),
    ],
)
def test_gpus_are_counted_from_tres(tres: str, gpus: int, seconds: float):
    tallies = Tallies()
    for at in (0.0, 30.0):
        tallies.nodes_read(nodes({"tres": tres, "gres": ""}), at)

    assert sum(tallies.gpu_seconds.values()) == seconds == 30 * gpus


@pytest.mark.parametrize(("flag", "default", "variable"), SOPERATOR_FLAGS, ids=lambda one: str(one))
def test_the_flags_and_variables_of_soperators_exporter_are_ours(flag: str, default: object, variable: str):
    found = next(one for one in exporter.params if flag in one.opts)

    assert isinstance(found, click.Option)
    assert found.envvar == variable
    assert found.required is (flag == "--cluster-name")
    if not found.required:
        assert exporter.make_context("exporter", ["--cluster-name=a"]).params[found.name] == default


@pytest.mark.parametrize("level", LEVELS.split())
def test_its_levels_of_logs_and_its_way_to_write_flags_are_understood(level: str):
    found = exporter.make_context("exporter", ["-cluster-name=a", f"-log-level={level}", "-standalone=false"])

    assert found.params["log_level"] == level
    assert found.params["standalone"] is False


def test_the_flags_and_the_variable_of_slinkys_exporter_are_understood():
    theirs = (
        "--cluster-name=a",
        "--server=http://slurm:6820",
        "--cache-freq=5s",
        "--metrics-bind-address=:9090",
    )

    found = settings(*theirs, "--compat=slinky", environ={"SLURM_JWT": "theirs"})
    other = settings("--cluster-name=a", environ={"SLURM_JWT": "of somebody at a login node"})

    assert found.urls == ("http://slurm:6820",)
    assert (found.plan.interval_seconds, found.metrics.port) == (5, 9090)
    assert found.login.static_token == "theirs"
    assert other.login.static_token == ""
