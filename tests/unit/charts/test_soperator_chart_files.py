"""Files of the charts in charts/soperator that come from code. SLURM_OPERATOR_GOLDEN=write writes them again."""

import os

import pytest
import yaml

import slurm_operator
from slurm_operator.api.nebius import SlurmCluster
from testing.chart_schema import CHARTS
from testing.soperator_charts import FOLDER, SOPERATOR, WITH_VALUES, fields, generated, known, values


@pytest.mark.parametrize(("name", "text"), generated().items(), ids=generated())
def test_a_file_made_from_code_is_what_the_code_says(name, text):
    path = CHARTS / name
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text, (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {name}"
    )


def test_these_are_the_charts():
    there = {path.parent.name for path in (CHARTS / FOLDER).glob("*/Chart.yaml")}

    assert there == set(SOPERATOR)


@pytest.mark.parametrize("name", SOPERATOR)
def test_a_chart_has_the_version_of_the_program(name):
    chart = yaml.safe_load((CHARTS / FOLDER / name / "Chart.yaml").read_text())

    assert (chart["version"], chart["appVersion"]) == (slurm_operator.__version__, slurm_operator.__version__)
    assert [one["version"] for one in chart.get("dependencies", ())] in ([], [slurm_operator.__version__])


@pytest.mark.parametrize("name", WITH_VALUES)
def test_no_default_of_a_chart_is_said_to_have_no_effect(name):
    assert list(told(values(name), known(name))) == []


def told(given, tree, path=""):
    """Values of which there is something to say, as the notes of a release find them."""
    for name, value in given.items():
        there = tree.get(name, tree.get("*"))
        if isinstance(there, str) or there is None:
            yield f"{path}{name}"
        elif isinstance(there, dict) and isinstance(value, dict):
            yield from told(value, there, f"{path}{name}.")


def test_fields_of_a_kind_are_a_tree_down_to_what_anything_may_stand_in():
    tree = fields(SlurmCluster)

    assert tree["partitionConfiguration"]["partitions"] == [
        {"name": True, "isAll": True, "nodeSetRefs": True, "config": True}
    ]
    assert tree["slurmNodes"]["controller"]["slurmctld"]["resources"] is True
    assert tree["volumeSources"] is True
