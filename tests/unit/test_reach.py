"""The package holds what its programs can get to, and what is listed here with the reason why it stays."""

from pathlib import Path

import pytest

from testing import chart_files, soperator_charts
from testing.reach import Module, Modules, modules, reached, scripts, unused

LAUNCHER = ("slurm_entry.__main__", "main")  # what images start
# What makes the charts out of the package
CHARTS = [Module(made.__name__, Path(str(made.__file__))) for made in (chart_files, soperator_charts)]

# By the beginning of their names.
KEPT = {
    "slurm_local.build.versions.ETCD": "for people; a test compares it with the go.mod that Kubernetes has",
    "slurm_operator.conditions.ConditionType": "for users to import: the words that programs may look for",
    "slurm_operator.http.messages.Reading.on_": "httptools calls them",
    "slurm_operator.http.messages._VERSIONS": "only what httptools calls looks at it",
    "slurm_operator.http.messages._Headers.on_": "httptools calls them",
    "slurm_operator.slurm.tres.": "limits of accounting are written so",
    "slurm_operator.slurmrest.database.": "reading and writing accounting",
}


@pytest.fixture(scope="module")
def known() -> Modules:
    return {**modules(), **{made.name: made for made in CHARTS}}


@pytest.fixture(scope="module")
def found(known: Modules) -> list[str]:
    """Modules that no program imports, then definitions that none mentions."""
    entries = [*scripts(), LAUNCHER]
    live = reached(known, [*(made.name for made in CHARTS), *(module for module, _ in entries)])
    names = {function for _, function in entries} | {chart_files.generated.__name__}
    return [*sorted(known.keys() - live), *unused({name: known[name] for name in live}, names)]


def test_nothing_is_in_the_package_that_no_program_gets_to(found: list[str]) -> None:
    assert [name for name in found if not name.startswith(tuple(KEPT))] == []


def test_what_is_listed_to_stay_is_still_without_a_user(found: list[str]) -> None:
    assert [beginning for beginning in KEPT if not any(name.startswith(beginning) for name in found)] == []


def package(folder: Path, **files: str) -> Modules:
    for name, text in {"__init__": "", **files}.items():
        (folder / f"{name}.py").write_text(text)
    return modules({"p": folder})


def test_a_module_is_reached_by_an_import_a_name_a_file_or_as_a_program(tmp_path: Path) -> None:
    made = package(
        tmp_path,
        start='from . import one\nCOMMANDS = {"two": ("p.two", "run")}\nFILE = "three.py"\n',
        one="import p.four",
        two="",
        three="",
        four="",
        lost="from p import alone",
        alone="",
        __main__="",
    )

    assert made.keys() - reached(made, ["p.start"]) == {"p.lost", "p.alone", "p.__main__"}
    assert "p.__main__" in reached(made, ["p"])


def test_functions_that_only_call_each_other_are_unused(tmp_path: Path) -> None:
    made = package(
        tmp_path,
        start="def main():\n    return used()\n\ndef used(): ...\n\ndef a():\n    return b()\n\ndef b():\n    return a()\n",
        group="@top.command()\ndef listed(): ...\n\nLIMIT = 3\n",
    )

    assert unused(made, ["main"]) == ["p.group.LIMIT", "p.start.a", "p.start.b"]


def test_a_method_is_used_by_its_name_or_by_the_library_whose_class_it_extends(tmp_path: Path) -> None:
    made = package(
        tmp_path,
        start=(
            "class Ours:\n    def asked(self): ...\n    def idle(self): ...\n    def __str__(self): ...\n\n"
            "class Theirs(click.Group):\n    def get_command(self): ...\n\n"
            "class Below(Theirs):\n    def parse_args(self): ...\n\n"
            "print(Ours().asked(), Below)\n"
        ),
    )

    assert unused(made, []) == ["p.start.Ours.idle"]
