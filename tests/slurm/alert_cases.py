"""For each alert of the chart: series that make it fire, when it does not yet, and when it does."""

from typing import Any, NamedTuple

_OBJECT = {"resource": "controllers", "namespace": "ns", "name": "slurm"}


def _series(called: str, /, **labels: str) -> str:
    return called + "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


class Case(NamedTuple):
    alert: str
    series: dict[str, str]
    not_yet: str
    fires: str
    labels: dict[str, str] = {}


def _condition(alert: str, type_: str, reason: str, value: int, not_yet: str, fires: str) -> Case:
    labels = _OBJECT | {"type": type_, "reason": reason}
    return Case(
        alert,
        {
            _series("slurm_operator_condition", **labels): f"{value}x90",
            _series(
                "slurm_operator_condition", **_OBJECT | {"type": type_, "reason": "Else"}
            ): f"{1 - value}x90",
        },
        not_yet,
        fires,
        labels,
    )


_POOL = {"cluster": "c", "pool": "gpu"}
_TOKEN = {"namespace": "ns", "name": "t"}

CASES = [
    Case("SlurmOperatorHasNoLeader", {"slurm_operator_is_leader": "0x90"}, "1m", "3m"),
    Case(
        "SlurmOperatorSlurmUnreachable",
        {_series("slurm_operator_snapshot_age_seconds", namespace="ns", controller="slurm"): "150x90"},
        "2m",
        "4m",
        {"namespace": "ns", "controller": "slurm"},
    ),
    Case(
        "SlurmOperatorErrors",
        {_series("slurm_operator_reconciles_total", reconciler="nodeset", result="failed"): "0+6x90"},
        "14m",
        "30m",
        {"reconciler": "nodeset"},
    ),
    Case("SlurmOperatorWorkersUnprotected", {"slurm_operator_workers_protected": "0x90"}, "9m", "11m"),
    Case(
        "SlurmOperatorWatchSilent",
        {_series("slurm_operator_watch_age_seconds", resource="pods"): "700x90"},
        "4m",
        "6m",
        {"resource": "pods"},
    ),
    Case("SlurmOperatorEventLoopLags", {"slurm_operator_event_loop_lag_seconds": "7x90"}, "4m", "6m"),
    Case(
        "SlurmOperatorUnreadableObjects",
        {_series("slurm_operator_undecodable_objects", resource="pods"): "1x90"},
        "4m",
        "6m",
        {"resource": "pods"},
    ),
    _condition("SlurmOperatorNoProgress", "Ready", "PodsNotReady", 0, "29m", "31m"),
    _condition("SlurmOperatorConfigurationRefused", "Degraded", "RehearsalRefused", 1, "0m", "2m"),
    _condition("SlurmOperatorNodeMismatch", "Degraded", "Mismatch", 1, "9m", "11m"),
    # Time begins at zero there: this one has an hour left, and nobody renews it.
    Case(
        "SlurmOperatorTokenNearExpiry",
        {_series("slurm_operator_token_expires_timestamp_seconds", **_TOKEN): "3600x90"},
        "1m",
        "3m",
        _TOKEN,
    ),
    # This one should have been renewed at the tenth minute.
    Case(
        "SlurmOperatorTokenNearExpiry",
        {
            _series("slurm_operator_token_expires_timestamp_seconds", **_TOKEN): "900x90",
            _series("slurm_operator_token_renews_timestamp_seconds", **_TOKEN): "600x90",
        },
        "12m",
        "14m",
        _TOKEN,
    ),
    # A user's drain may take a week.
    Case(
        "SlurmDrainTooLong",
        {
            _series("slurm_pool_oldest_drain_seconds", **_POOL, owner="operator"): "90000x90",
            _series("slurm_pool_oldest_drain_seconds", **_POOL, owner="user"): "90000x90",
        },
        "4m",
        "6m",
        _POOL | {"owner": "operator"},
    ),
    Case(
        "SlurmQueueStuck",
        {
            _series(
                "slurm_queue_jobs", cluster="c", state="PENDING", partition="all", reason_class="resources"
            ): "2x90",
            _series("slurm_queue_wait_seconds_count", cluster="c", partition="all"): "5x90",
            _series("slurm_pool_nodes", **_POOL, state="idle"): "3x90",
        },
        "29m",
        "31m",
        {"cluster": "c"},
    ),
    # Here a job starts every ten minutes, until the last one does in the fortieth.
    Case(
        "SlurmQueueStuck",
        {
            _series(
                "slurm_queue_jobs", cluster="c", state="PENDING", partition="all", reason_class="priority"
            ): "2x120",
            _series("slurm_queue_wait_seconds_count", cluster="c", partition="all"): "0x9 1x9 2x9 3x9 4x90",
            _series("slurm_pool_nodes", **_POOL, state="idle"): "3x120",
        },
        "90m",
        "110m",
        {"cluster": "c"},
    ),
    Case("SlurmNodesDown", {_series("slurm_pool_nodes", **_POOL, state="down"): "1x90"}, "14m", "16m", _POOL),
    Case(
        "SlurmExporterStale",
        {
            _series("slurm_exporter_last_success_timestamp_seconds", cluster="c", collector="nodes"): "0x90",
            _series(
                "slurm_exporter_last_success_timestamp_seconds", cluster="c", collector="topology"
            ): "0x90",
        },
        "6m",
        "8m",
        {"cluster": "c", "collector": "nodes"},
    ),
    Case(
        "SlurmExporterCutOff",
        {_series("slurm_exporter_series_dropped", cluster="c", family="slurm_job_info"): "7x90"},
        "14m",
        "16m",
        {"cluster": "c", "family": "slurm_job_info"},
    ),
]


def rules_without_texts(rules: dict[str, Any]) -> dict[str, Any]:
    """promtool compares texts too; those are not what is tested here."""
    groups = [
        {
            **group,
            "rules": [
                {key: value for key, value in rule.items() if key != "annotations"} for rule in group["rules"]
            ],
        }
        for group in rules["groups"]
    ]
    return {"groups": groups}


def cases_file(rules: dict[str, Any], file: str) -> dict[str, Any]:
    """What `promtool test rules` takes."""
    severity = {
        rule["alert"]: rule["labels"]["severity"] for group in rules["groups"] for rule in group["rules"]
    }
    return {
        "rule_files": [file],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
                "alert_rule_test": [
                    {"eval_time": case.not_yet, "alertname": case.alert, "exp_alerts": []},
                    {
                        "eval_time": case.fires,
                        "alertname": case.alert,
                        "exp_alerts": [{"exp_labels": case.labels | {"severity": severity[case.alert]}}],
                    },
                ],
            }
            for case in CASES
        ],
    }
