"""The reference pages and the command that prints CRDs."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from slurm_operator.api import KINDS
from slurm_operator.api.reference import pages
from slurm_operator.api.schema.crd import crd
from slurm_operator.cli import main

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def test_the_pages_in_the_repository_are_up_to_date() -> None:
    # Made from the metrics, and tested with them; written by hand.
    others = {REFERENCE / "metrics.md", REFERENCE / "support.md"}
    written = {
        str(path.relative_to(REFERENCE)): path.read_text() for path in {*REFERENCE.rglob("*.md")} - others
    }

    assert written == pages(), "run: slurm-operator crds --reference docs/reference"


def test_the_command_writes_the_pages(tmp_path: Path) -> None:
    CliRunner().invoke(main, ["crds", "--reference", str(tmp_path)], catch_exceptions=False)

    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")} == set(pages())


def test_the_command_prints_every_definition_the_same_way_each_time() -> None:
    first, second = (CliRunner().invoke(main, ["crds"], catch_exceptions=False).output for _ in range(2))

    assert first == second
    assert list(yaml.load_all(first, Loader=LOADER)) == [crd(cls) for cls in KINDS]


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)
def test_uninstalling_the_chart_keeps_the_definitions(cls: type) -> None:
    assert crd(cls)["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_every_page_has_its_fields_and_rules_in_words() -> None:
    page = pages()["slinky.slurm.net/nodeset.md"]

    assert "| `drainPolicy.deadline` | duration |" in page
    assert (
        "- `spec.drainPolicy.deadline`: Requeue and Cancel end jobs, so they need a deadline that says when"
        in page
    )
