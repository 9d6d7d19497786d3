"""Files of the charts that come from code. SLURM_OPERATOR_GOLDEN=write writes them again."""

import os
import re
from pathlib import Path

import pytest
import yaml

import slurm_operator
from slurm_operator import wire
from testing.chart_files import generated
from testing.chart_schema import CHARTS, known, values_schema

# For `kubectl slurm doctor --from slinky`, which has no charts at hand.
KNOWN = Path(slurm_operator.__file__).parent / "insight" / "doctor" / "known_values.json"


@pytest.mark.parametrize(("name", "text"), generated().items(), ids=generated())
def test_a_file_made_from_code_is_what_the_code_says(name, text):
    path = CHARTS / name
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.write_text(text)
    assert path.read_text() == text, (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {name}"
    )


def test_the_values_that_doctor_knows_are_those_of_the_charts():
    text = wire.pretty({chart: known(chart) for chart in ("slurm-operator", "slurm")}) + "\n"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        KNOWN.write_text(text)
    assert KNOWN.read_text() == text, "run again with SLURM_OPERATOR_GOLDEN=write and look at what changed"


@pytest.mark.parametrize("chart", ["slurm-operator-crds", "slurm-operator", "slurm"])
def test_the_schema_of_a_chart_follows_its_values(chart):
    path, text = CHARTS / chart / "values.schema.json", wire.pretty(values_schema(chart)) + "\n"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.write_text(text)
    assert path.read_text() == text, (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {path}"
    )


def test_there_is_no_definition_of_a_kind_that_is_gone():
    there = {
        f"slurm-operator-crds/templates/{path.name}"
        for path in (CHARTS / "slurm-operator-crds" / "templates").glob("*.yaml")
    }

    assert there <= generated().keys()


@pytest.mark.parametrize("name", ["slurm-operator-crds", "slurm-operator"])
def test_a_chart_has_the_version_of_the_program(name):
    chart = yaml.safe_load((CHARTS / name / "Chart.yaml").read_text())

    assert (chart["version"], chart["appVersion"]) == (slurm_operator.__version__, slurm_operator.__version__)


def test_no_template_makes_anything_up():
    """What a template draws by lot differs on every rendering, and then everything is written and restarted."""
    drawn = re.compile(
        r"{{(?!-? */\*)[^}]*\b(rand\w+|gen[A-Z]\w+|uuidv4|now|htpasswd|derivePassword|bcrypt)\b"
    )
    templates = [path for path in CHARTS.rglob("templates/*") if path.suffix in (".yaml", ".tpl", ".txt")]

    assert [path.name for path in templates if drawn.search(path.read_text())] == []
