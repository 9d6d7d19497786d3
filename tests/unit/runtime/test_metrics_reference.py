"""The page about metrics, and what the dashboard and the alerts of the chart make of them."""

import os
import re
from pathlib import Path

import pytest

from slurm_operator.runtime.metrics import Metrics
from slurm_operator.runtime.metrics_reference import page
from slurm_operator.webhook.metrics import Metrics as WebhookMetrics

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


def test_every_metric_says_what_it_is_and_carries_our_name():
    rows = [line.split("|") for line in made().splitlines() if line.startswith("| `")]

    assert len(rows) > 10
    assert all(NAME.search(row[1]) and len(row[4].strip()) > 10 for row in rows)


@pytest.mark.parametrize("name", ["alerts.yaml", "dashboard.json"])
def test_the_chart_asks_only_for_metrics_that_there_are(name):
    known = set(NAME.findall(made()))
    asked = set(NAME.findall((ROOT / "charts" / "slurm-operator" / "files" / name).read_text()))

    assert {re.sub(r"_bucket$", "", one) for one in asked} <= known


def test_the_guide_says_what_each_alert_means():
    alerts = (ROOT / "charts" / "slurm-operator" / "files" / "alerts.yaml").read_text()
    guide = (ROOT / "docs" / "guides" / "monitoring.md").read_text()

    assert re.findall(r"alert: (\w+)", alerts) == re.findall(
        r"^\| (SlurmOperator\w+) \|", guide, re.MULTILINE
    )
