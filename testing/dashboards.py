"""The dashboards about Slurm in the chart, written once and readably: titles, expressions, legends.

SLURM_OPERATOR_GOLDEN=write has tests/unit/runtime write the JSON files again.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

FILES: Final = Path(__file__).parents[1] / "charts" / "slurm-operator" / "files"
ALERTS: Final = FILES / "alerts.yaml"
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}

# Where a test has a minute for what takes hours or a week, by alert: what is written there, and what stands in its place. Nothing else of an expression changes.
_SHORTER: Final = {
    "SlurmOperatorSlurmUnreachable": {"> 120": "> 1"},
    "SlurmOperatorErrors": {"[10m]": "[20s]", "> 0.05": "> 0"},
    "SlurmOperatorWatchSilent": {"> 600": "> 1"},
    "SlurmOperatorEventLoopLags": {"> 5": "> 0.001"},
    "SlurmOperatorUnreadableObjects": {"> 0": ">= 0"},
    "SlurmDrainTooLong": {"> 86400": "> 5", "> 604800": "> 5"},
    "SlurmQueueStuck": {"[30m]": "[5s]"},
    "SlurmExporterStale": {"> 300": "> 5"},
}

# What a dashboard lets its reader choose; `.+` is everything.
_CHOSEN: Final = 'cluster=~"$cluster"'


class Panel(NamedTuple):
    """A row of `columns` parts of 24 wide."""

    title: str
    about: str
    expression: str
    legend: str = ""
    unit: str = "short"
    type: str = "timeseries"
    width: int = 12
    height: int = 8


class Dashboard(NamedTuple):
    name: str
    title: str
    panels: tuple[Panel, ...]


def _by(metric: str, *labels: str, more: str = "") -> str:
    return f"sum by ({', '.join(('cluster', *labels))}) ({metric}{{{_CHOSEN}{more}}})"


OVERVIEW: Final = Dashboard(
    "slurm-overview",
    "Slurm: overview",
    (
        Panel("Running", "Jobs that run.", _by("slurm_queue_jobs", more=',state="RUNNING"'), "{{cluster}}", type="stat", width=4, height=4),
        Panel("Waiting", "Jobs that wait; each counts in every partition that it names.", _by("slurm_queue_jobs", more=',state="PENDING"'), "{{cluster}}", type="stat", width=4, height=4),
        Panel("Nodes", "Slurm nodes.", _by("slurm_pool_nodes"), "{{cluster}}", type="stat", width=4, height=4),
        Panel("Out of service", "Nodes that are down, silent or drained.", _by("slurm_pool_nodes", more=',state=~"down|not_responding|drained|draining"') + " or " + _by("slurm_pool_nodes") + " * 0", "{{cluster}}", type="stat", width=4, height=4),
        Panel("CPUs in use", "Part of all CPUs that jobs have.", _by("slurm_pool_cpus", more=',state="allocated"') + " / " + _by("slurm_pool_cpus"), "{{cluster}}", "percentunit", "stat", 4, 4),
        Panel("Age of the data", "Seconds since a part of Slurm was last read well.", f"max by (cluster) (time() - slurm_exporter_last_success_timestamp_seconds{{{_CHOSEN}}})", "{{cluster}}", "s", "stat", 4, 4),
        Panel("Jobs by state", "", _by("slurm_queue_jobs", "state"), "{{state}}"),
        Panel("Nodes by state", "", _by("slurm_pool_nodes", "state"), "{{state}}"),
        Panel("CPUs", "What jobs have, what is free, what is out of service.", _by("slurm_pool_cpus", "state"), "{{state}}"),
        Panel("Memory", "", _by("slurm_pool_memory_bytes", "state"), "{{state}}", "bytes"),
        Panel("Calls to slurmctld", "The ten most frequent kinds, per second.", f"topk(10, sum by (cluster, message_type) (rate(slurm_controller_rpc_calls_total{{{_CHOSEN}}}[5m])))", "{{message_type}}"),
        Panel("Time of slurmctld in calls", "Seconds of each second.", f"topk(10, sum by (cluster, message_type) (rate(slurm_controller_rpc_duration_seconds_total{{{_CHOSEN}}}[5m])))", "{{message_type}}", "s"),
    ),
)  # fmt: skip

QUEUE: Final = Dashboard(
    "slurm-queue",
    "Slurm: queue and waits",
    (
        Panel("Waiting jobs, by kind of reason", "", _by("slurm_queue_jobs", "reason_class", more=',state="PENDING"'), "{{reason_class}}"),
        Panel("Waiting jobs, by partition", "", _by("slurm_queue_jobs", "partition", more=',state="PENDING"'), "{{partition}}"),
        Panel("Oldest waiting job", "Since its submission.", f"max by (cluster, partition) (slurm_queue_oldest_pending_seconds{{{_CHOSEN}}})", "{{partition}}", "s"),
        Panel("Starts", "Jobs that started, per second.", f"sum by (cluster, partition) (rate(slurm_queue_wait_seconds_count{{{_CHOSEN}}}[5m]))", "{{partition}}"),
        Panel("Wait before the start, median", "", f"histogram_quantile(0.5, sum by (cluster, le) (rate(slurm_queue_wait_seconds_bucket{{{_CHOSEN}}}[30m])))", "{{cluster}}", "s"),
        Panel("Wait before the start, 95th percentile", "", f"histogram_quantile(0.95, sum by (cluster, le) (rate(slurm_queue_wait_seconds_bucket{{{_CHOSEN}}}[30m])))", "{{cluster}}", "s"),
        Panel("Running jobs, by partition", "", _by("slurm_queue_jobs", "partition", more=',state="RUNNING"'), "{{partition}}"),
        Panel("Jobs that ended badly", "Of those that slurmctld still holds.", _by("slurm_queue_jobs", "state", more=',state=~"FAILED|NODE_FAIL|TIMEOUT|OUT_OF_MEMORY|BOOT_FAIL"'), "{{state}}"),
    ),
)  # fmt: skip

POOLS: Final = Dashboard(
    "slurm-pools",
    "Slurm: pools and drains",
    (
        Panel("Nodes of each pool, by state", "A pool is a NodeSet.", _by("slurm_pool_nodes", "pool", "state"), "{{pool}} {{state}}"),
        Panel("CPUs of each pool", "", _by("slurm_pool_cpus", "pool", "state"), "{{pool}} {{state}}"),
        Panel("Oldest drain", "By who made it: the operator, Slurm, or a user.", f"max by (cluster, pool, owner) (slurm_pool_oldest_drain_seconds{{{_CHOSEN}}})", "{{pool}} {{owner}}", "s"),
        Panel("GPUs of each pool", "", _by("slurm_pool_gpus", "pool", "state"), "{{pool}} {{state}}"),
        Panel("Part of the time in service", "Of the last hour: node-seconds that jobs could use.", f'sum by (cluster, pool) (increase(slurm_pool_node_seconds_total{{{_CHOSEN},state=~"idle|mixed|allocated"}}[1h])) / sum by (cluster, pool) (increase(slurm_pool_node_seconds_total{{{_CHOSEN}}}[1h]))', "{{pool}}", "percentunit"),
        Panel("Node-seconds out of service", "Per second, by who keeps nodes there.", f'sum by (cluster, pool, reason_class) (rate(slurm_pool_node_seconds_total{{{_CHOSEN},state!~"idle|mixed|allocated"}}[5m]))', "{{pool}} {{reason_class}}"),
        # A reason is a series of its own from its first failure on, and `increase` does not see how a series begins.
        Panel("Failures", "Nodes that went down or were drained in the last hour.", f"sum by (cluster) (clamp_min(slurm_node_fails_total{{{_CHOSEN}}} - slurm_node_fails_total{{{_CHOSEN}}} offset 1h, 0) or slurm_node_fails_total{{{_CHOSEN}}})", "{{cluster}}"),
        Panel("Workers on each Kubernetes node", "", f"count by (cluster, kube_node) (slurm_node_pod_info{{{_CHOSEN}}})", "{{kube_node}}"),
    ),
)  # fmt: skip

DASHBOARDS: Final = (OVERVIEW, QUEUE, POOLS)


def text(dashboard: Dashboard) -> str:
    """The JSON that Grafana reads."""
    return json.dumps(_content(dashboard), indent=2, ensure_ascii=False) + "\n"


def _content(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "title": dashboard.title,
        "uid": dashboard.name,
        "tags": ["slurm"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                {
                    "name": "cluster",
                    "type": "query",
                    "label": "Cluster",
                    "datasource": _SOURCE,
                    "query": {"query": "label_values(slurm_pool_nodes, cluster)", "refId": "clusters"},
                    "definition": "label_values(slurm_pool_nodes, cluster)",
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                    "allValue": ".+",
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": list(_panels(dashboard.panels)),
    }


def _panels(panels: tuple[Panel, ...]) -> Iterator[dict[str, Any]]:
    x = y = row = 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > 24:
            x, y, row = 0, y + row, 0
        yield {
            "id": number,
            "type": panel.type,
            "title": panel.title,
            "description": panel.about,
            "datasource": _SOURCE,
            "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "targets": [{"refId": "A", "expr": panel.expression, "legendFormat": panel.legend}],
        }
        x, row = x + panel.width, max(row, panel.height)


def files() -> list[Path]:
    """Every dashboard of the chart."""
    return [FILES / "dashboard.json", *(FILES / "dashboards" / f"{one.name}.json" for one in DASHBOARDS)]


def expressions(path: Path) -> list[tuple[str, str]]:
    """(title, expression) of each panel, with every cluster chosen."""
    found = json.loads(path.read_text())["panels"]
    return [
        (panel["title"], with_every_cluster(target["expr"])) for panel in found for target in panel["targets"]
    ]


def with_every_cluster(expression: str) -> str:
    return re.sub(r"\$cluster", ".+", expression)


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def rules_at_once(directory: Path) -> Path:
    """The alerts of the chart with nothing to wait for, and shorter where it takes longer than a test."""
    text = re.sub(r"^( +for:) .*$", r"\1 0s", ALERTS.read_text(), flags=re.MULTILINE)
    for alert, changes in _SHORTER.items():
        begin = text.index(f"- alert: {alert}\n")
        end = text.index("for: 0s", begin)
        rule = text[begin:end]
        for written, instead in changes.items():
            assert rule.count(written) == 1, f"{alert} has no {written}"
            rule = rule.replace(written, instead)
        text = text[:begin] + rule + text[end:]
    path = directory / "alerts.yaml"
    path.write_text(text)
    return path
