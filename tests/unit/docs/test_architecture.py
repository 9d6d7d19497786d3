"""The pages about the structure say what the code and the import contracts say."""

import re
from pathlib import Path

import pytest

from testing.architecture import PAGE, block, contracts, picture, redrawn
from testing.docs import FENCE
from testing.named_paths import ROOT, SOURCE, defines

LIFE = PAGE.with_name("life-of-a-change.md")
STEP = re.compile(r"^\| (\d+) \| `([^`]+)` \| ([^|]+) \|", re.MULTILINE)


def layers(*rows: str, name: str = "Layers") -> dict:
    return {"name": name, "type": "layers", "layers": list(rows)}


def test_the_picture_is_drawn_from_the_contracts():
    assert block(contracts()) in PAGE.read_text(), "run: .venv/bin/python -m testing.architecture"


def test_a_change_of_the_contracts_changes_the_picture_and_nothing_else():
    changed = [*contracts(), layers("elsewhere.upper", "elsewhere.lower")]
    page = redrawn(PAGE.read_text(), changed)

    assert block(changed) in page
    assert redrawn(page, contracts()) == PAGE.read_text()


def test_layers_stand_on_each_other_and_walls_meet():
    drawn = picture([layers("a.top", "a.one | a.two", "a.x : a.y")])

    assert [line.replace(" ", "") for line in drawn.splitlines()[1:]] == [
        f"┌{'─' * 76}┐",
        "│top│",
        f"├{'─' * 38}┬{'─' * 37}┤",
        "│one│two│",
        f"├{'─' * 38}┴{'─' * 37}┤",
        "│x,y│",
        f"└{'─' * 76}┘",
    ]
    assert {len(line) for line in drawn.splitlines()[1:]} == {78}


def test_a_stack_that_may_not_import_another_one_stands_below_it():
    core, shell = layers("a.core", name="Core"), layers("a.shell", name="Shell")
    kept = {"name": "x", "type": "forbidden", "source_modules": ["a.core"], "forbidden_modules": ["a.shell"]}

    apart, together = picture([core, shell]), picture([core, shell, kept])

    assert apart.index("Core") < apart.index("Shell")
    assert together.index("Shell") < together.index("▼") < together.index("Core")


def test_a_layer_with_many_boxes_makes_its_picture_wider():
    names = [f"a.module_number_{number}" for number in range(9)]
    drawn = picture([{"name": "Many", "type": "independence", "modules": names}]).splitlines()[1:]

    assert len({len(line) for line in drawn}) == 1
    assert [name.strip() for name in drawn[1].strip("│").split("│")] == [name[2:] for name in names]


def test_the_page_says_what_each_contract_promises():
    rows = re.findall(r"^\| ([^|]+) \| ", PAGE.read_text().partition("| Contract |")[2], re.MULTILINE)

    assert rows[: rows.index("You add")] == [contract["name"] for contract in contracts()]


@pytest.mark.parametrize(
    "package", ["slurm_operator", "slurm_operator.reconcilers"], ids=["the operator", "the reconcilers"]
)
def test_every_package_stands_in_a_contract(package: str):
    folder = SOURCE.parent / package.replace(".", "/")
    there = {f"{package}.{path.parent.name}" for path in folder.glob("*/__init__.py")}
    stacks = {module for contract in contracts() for module in in_stack(contract)}
    alone = {
        module
        for contract in contracts()
        if contract["type"] == "forbidden"
        for module in contract["source_modules"]
    }

    assert there
    assert there <= stacks | (alone if package == "slurm_operator" else set())


def in_stack(contract: dict) -> list[str]:
    layers = contract.get("layers", contract.get("modules", []))
    return [module.strip() for layer in layers for box in layer.split("|") for module in box.split(":")]


def tree() -> list[str]:
    """The paths in the tree of the page: how far a name is indented says in which folder it is."""
    _, text = FENCE.findall(PAGE.read_text())[0]
    found: list[str] = []
    parents: list[str] = []
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [line.split()[0].rstrip("/")]
        found.append("/".join(parents))
    return found


def test_every_folder_in_the_tree_exists_and_is_named_once():
    assert [path for path in tree() if not (ROOT / path).is_dir()] == []
    assert len(tree()) == len(set(tree()))


def packages(*folders: str) -> set[str]:
    return {
        str(file.parent.relative_to(ROOT))
        for folder in folders
        for file in (ROOT / folder).rglob("__init__.py")
    }


def folders_in(*folders: str) -> set[str]:
    found = (path for folder in folders for path in (ROOT / folder).iterdir())
    return {str(path.relative_to(ROOT)) for path in found if path.is_dir() and path.name != "__pycache__"}


def test_no_package_is_missing_in_the_tree():
    there = packages("src", "images", "testing") | folders_in("images", "testing", "tests")

    assert there - set(tree()) == set()


def test_every_module_without_a_package_is_named():
    alone = {file.name for file in SOURCE.glob("*.py")} - {"__init__.py"}
    sentence = PAGE.read_text().partition("belong to no package:")[2].partition("\n\n")[0]

    assert set(re.findall(r"`(\w+\.py)`", sentence)) == alone


STEPS = [
    (int(number), SOURCE / file, function)
    for number, file, functions in STEP.findall(LIFE.read_text())
    for function in re.findall(r"`([^`]+)`", functions)
]


def test_the_steps_of_the_life_of_a_change_are_counted_without_a_gap():
    assert sorted({number for number, _, _ in STEPS}) == list(range(1, 30))


@pytest.mark.parametrize(
    ("number", "file", "function"), STEPS, ids=lambda value: str(value).rpartition("/")[2]
)
def test_a_step_of_the_life_of_a_change_names_a_function_of_its_file(number: int, file: Path, function: str):
    assert defines(file, function)
