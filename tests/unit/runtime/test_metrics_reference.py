"""The page about metrics, and what the dashboard and the alerts of the chart make of them."""

import os
import re
from pathlib import Path

import pytest

from slurm_operator.exporter.collecting import Collector, Plan
from slurm_operator.exporter.facts import Facts
from slurm_operator.exporter.options import Options
from slurm_operator.exporter.page import table
from slurm_operator.exporter.table import Table
from slurm_operator.exporter.tallies import Tallies
from slurm_operator.runtime.metrics import Metrics
from slurm_operator.webhook.metrics import Metrics as WebhookMetrics
from testing import dashboards
from testing.metrics_page import page
from testing.virtual_time import FakeClock
from unit.exporter.pages import NOW, diag, jobs, nodes
from unit.exporter.test_exporter_pages import COMMENT

ROOT = Path(__file__).parents[3]
NAME = re.compile(r"\bslurm_operator_\w+")


def made() -> str:
    return page({"The operator": Metrics().registry, "The webhook": WebhookMetrics().registry})


def test_the_page_lists_every_metric():
    path = ROOT / "docs" / "reference" / "metrics.md"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.write_text(made())

    assert path.read_text() == made(), (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {path}"
    )


# Names of controller-runtime and client-go, which dashboards for any operator use.
GENERIC = {
    "controller_runtime_reconcile_total": {"controller", "result"},
    "controller_runtime_reconcile_errors_total": {"controller"},
    "controller_runtime_reconcile_time_seconds": {"controller"},
    "workqueue_depth": {"name", "controller"},
    "rest_client_requests_total": {"code", "host", "method"},
    "leader_election_master_status": {"name"},
}


def test_every_metric_says_what_it_is_and_carries_our_name_or_a_generic_one():
    rows = [line.split("|") for line in made().splitlines() if line.startswith("| `")]
    others = {
        row[1].strip(" `"): set(re.findall(r"`(\w+)`", row[3])) for row in rows if not NAME.search(row[1])
    }

    assert len(rows) > 10
    assert others == GENERIC
    assert all(len(row[4].strip()) > 10 for row in rows)


def asked(text: str) -> set[str]:
    return {re.sub(r"_(bucket|count|sum)$", "", one) for one in re.findall(r"\bslurm_\w+", text)}


def shown() -> set[str]:
    """What the operator and the exporter show, in its default mode."""
    facts = Facts(
        nodes=nodes({"comment": COMMENT, "tres": "cpu=2,gres/gpu=8"}), jobs=jobs({}), diagnosis=diag()
    )
    families = table(facts, Tallies(), NOW, Options()).families
    self_page = Collector(None, Plan("demo"), Options(), FakeClock()).self_families(Table())
    return asked(made()) | {family.name for family in (*families, *self_page)}


@pytest.mark.parametrize(
    "path", [dashboards.FILES / "alerts.yaml", *dashboards.files()], ids=lambda path: path.name
)
def test_the_chart_asks_only_for_metrics_that_there_are(path: Path):
    assert asked(path.read_text()) <= shown() | {"slurm_operator"}


@pytest.mark.parametrize("dashboard", dashboards.DASHBOARDS, ids=lambda one: one.name)
def test_the_dashboards_of_the_chart_are_those_that_are_written_down(dashboard: dashboards.Dashboard):
    path = dashboards.FILES / "dashboards" / f"{dashboard.name}.json"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.write_text(dashboards.text(dashboard))

    assert path.read_text() == dashboards.text(dashboard)


def test_the_guide_says_what_each_alert_means():
    guide = (ROOT / "docs" / "guides" / "monitoring.md").read_text()
    alerts = dashboards.alerts()

    assert [one["alert"] for one in alerts] == re.findall(r"^#### (Slurm\w+)$", guide, re.MULTILINE)
    assert all(
        one["annotations"]["runbook_url"] == f"docs/guides/monitoring.md#{one['alert'].lower()}"
        for one in alerts
    )
