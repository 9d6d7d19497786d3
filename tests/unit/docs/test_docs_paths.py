"""Whatever the documentation, the reports of chaos runs and the mutants name of the source is there."""

import re
from functools import cache
from pathlib import Path

import pytest

from testing.named_paths import ROOT, defines, missing_in_code, missing_in_page

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "chaos").glob("*.md")])
FOLDERS = ("src", "images", "testing", "tests", "bench", "chaos", "charts")
ENDINGS = {".py", ".c", ".h", ".yaml", ".tpl", ".txt"}

LINK = re.compile(r"\]\(([^)\s]+)\)")

# What looks like a name of something, and is another thing.
OTHER_THINGS = {
    "slurm_operator.decisions": "a logger",
    "bench/noted": "an annotation",
    "slurm_operator.http.links": "of commits that bench/transport.py compares with",
    "slurm_operator.runtime.loop.gathering": "the same",
}


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_what_a_page_names_of_the_source_exists(page: Path) -> None:
    assert missing_in_page(page.read_text()) == []


# The site checks links between its own pages; these are not on it.
@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=_name)
def test_a_link_of_a_page_in_the_repository_leads_somewhere(page: Path) -> None:
    links = (link.partition("#")[0] for link in LINK.findall(page.read_text()) if "://" not in link)

    assert [link for link in links if link and not (page.parent / link).exists()] == []


@cache
def _missing_in_programs() -> dict[str, set[str]]:
    """By file: mutants, benchmarks and charts among them. Not this one, which names what is not there."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in ENDINGS]
    others = (file for file in files if file != Path(__file__))
    found = (
        (file, missing_in_code(file.read_text()))
        for file in (ROOT / "Makefile", ROOT / "pyproject.toml", *others)
    )
    return {_name(file): set(missing) for file, missing in found if missing}


def test_what_programs_name_of_the_source_exists() -> None:
    found = {file: missing - OTHER_THINGS.keys() for file, missing in _missing_in_programs().items()}

    assert {file: missing for file, missing in found.items() if missing} == {}


def test_the_list_of_other_things_is_needed() -> None:
    assert set().union(*_missing_in_programs().values()) >= OTHER_THINGS.keys()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("see `tests/simulation/mutants.py`.", []),
        ("see tests/simulation/mutant.py.", ["tests/simulation/mutant.py"]),
        ("in `src/slurm_operator/safety/`", []),
        ("in `src/slurm_operator/safe/`", ["src/slurm_operator/safe/"]),
        ("`safety/gate.py` makes it", []),
        ("`plan/gate.py` makes it", ["plan/gate.py"]),
        ("`reconcilers/*/observe.py`", []),
        ("`reconcilers/*/watch.py`", ["reconcilers/*/watch.py"]),
        ("`safety/` and `promise/`", ["promise/"]),
        ("`kubectl slurm explain nodeset/cpu`", []),
        ("`mutants.py`, `mutants2.py`", ["mutants2.py"]),
        ("`slurm_operator.safety.gate` and slurm_operator.safety.gate.Shut", []),
        ("`slurm_operator.plan.gate`", ["slurm_operator.plan.gate"]),
        ("`slurm_operator.safety.gate.Open`", ["slurm_operator.safety.gate.Open"]),
        ("run `python -m net`, `python -m chaos.report`", []),
        ("run `python -m nets`", ["nets"]),
        ("from testing.control_plane import ControlPlane\n", []),
        ("from testing.control_plane import Aeroplane\n", ["testing.control_plane.Aeroplane"]),
        ("https://example.org/src/of/something and $CACHE/images/x", []),
    ],
)
def test_what_does_not_exist_would_be_noticed(text: str, missing: list[str]) -> None:
    assert missing_in_page(text) == missing


@pytest.mark.parametrize(
    ("name", "is_there"),
    [("gate", True), ("Candidate.has_crashed", True), ("Candidate.gate", False), ("open_gate", False)],
)
def test_a_function_is_found_where_it_is_defined(name: str, is_there: bool) -> None:
    assert defines(ROOT / "src/slurm_operator/safety/gate.py", name) is is_there


def test_every_page_is_in_the_menu_of_the_site():
    menu = (ROOT / "mkdocs.yml").read_text()
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]

    assert [page for page in pages if f": {page}\n" not in menu] == []
