"""Rules of the CRDs that hold in Python too: where the API server does not know them, the webhook refuses."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from slurm_operator.api import KINDS
from slurm_operator.api.schema.cel import looks_like
from slurm_operator.api.schema.codec import read
from slurm_operator.api.schema.problems import References, Severity
from slurm_operator.api.shared.worker_parts import _HOSTNAME_PREFIX
from slurm_operator.api.slinky.nodeset import _PARAMETERS
from slurm_operator.slurm.conf.lines import WHITE

TESTS = Path(__file__).parents[2]
CASES: list[dict[str, Any]] = yaml.safe_load((TESTS / "integration" / "crd_rules.yaml").read_text())
EXAMPLES = TESTS.parent / "docs" / "examples"
MODELS = {cls.KIND.kind: cls for cls in KINDS}

# What the Slinky operator refuses, whose CRDs do not.
THEIRS = [
    "controllerRef.name says which Controller these workers register with; it is needed",
    "controllerRef cannot change: running jobs belong to the old cluster; make a new NodeSet",
    "volumeClaimTemplates cannot change: the volumes exist; make a new NodeSet for others",
    "is a list of Key=Value, with spaces between them and neither spaces nor control characters inside",
    "with 0 no worker could ever be replaced; use 1 or more, or a percentage",
    "Slurm counts reservations in minutes; use 1m or more",
    "ssh needs to know its users",
    "starts host names, so it may have lower-case letters, digits, '-' and '.' only",
    "controllerRef.name says which cluster people use here; it is needed",
    "controllerRef cannot change; make a new LoginSet for another cluster",
    "sssdConfRef.name says which Secret holds sssd.conf; it is needed",
    "slurmKeyRef.name cannot change",
    "jwtKeyRef.name cannot change",
    "enabled cannot change",
    "existingClaim cannot change",
]


def manifest(name: str) -> dict[str, Any]:
    return yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())


def changed(thing: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The manifest with the values at some dotted paths replaced; ... removes."""
    for path, value in changes.items():
        *parents, last = path.split(".")
        place: Any = thing
        for name in parents:
            place = place[int(name)] if name.isdecimal() else place.setdefault(name, {})
        if value is ...:
            place.pop(last, None)
        else:
            place[last] = value
    return thing


def refused(case: dict[str, Any]) -> str:
    """Everything that Python has against a case of the table for the API server."""
    cls = MODELS[manifest(case["example"])["kind"]]
    at_once = {
        **case.get("changed", {}),
        **case.get("made with", {}),
        **dict.fromkeys(case.get("without", []), ...),
    }
    before = read(cls, changed(manifest(case["example"]), at_once))
    if "changed later" not in case:
        return errors(before, None)
    assert errors(before, None) == ""
    return errors(
        read(cls, changed(changed(manifest(case["example"]), at_once), case["changed later"])), before
    )


def errors(new: Any, old: Any) -> str:
    found = new.problems(old, References())
    return "; ".join(str(problem) for problem in found if problem.severity is Severity.ERROR)


@pytest.mark.parametrize("words", THEIRS)
def test_what_the_operator_before_us_refuses_is_refused_in_the_same_words_without_our_crds(words):
    theirs = [case for case in CASES if not case["example"].startswith("cluster")]
    cases = [case for case in theirs if words in " ".join(case["says"].split())]

    assert cases, "the API server's own table has it, too"
    assert all(words in refused(case) for case in cases)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_an_example_is_accepted_as_it_is_and_when_nothing_changes(file):
    plain = yaml.safe_load(file.read_text())
    thing = read(MODELS[plain["kind"]], plain)

    assert errors(thing, None) == ""
    assert errors(thing, thing) == ""


def test_a_rule_names_the_place_it_is_about():
    spec = {"nodeSets": [{"name": "a"}, {"name": "b", "template": {"spec": {"hostname": "GPU\nInclude"}}}]}

    [problem] = [
        problem
        for problem in read(MODELS["Cluster"], {"metadata": {"name": "c", "namespace": "n"}, "spec": spec}).problems(None, References())
        if problem.severity is Severity.ERROR
    ]  # fmt: skip

    assert problem.path == "spec.nodeSets[1].template.spec.hostname"


@pytest.mark.parametrize(
    "hostile",
    ["a=" + "x" * 40_000 + " b", "=" * 40_000, " " * 40_000 + "x", "= " * 20_000 + "x", "a=b " * 10_000 + "c", "a-" * 20_000 + "\n", "a." * 20_000],
    ids=range(7),
)  # fmt: skip
def test_no_text_keeps_the_checks_busy(hostile):
    """One that tries every way to read it would not end before the test is ended."""
    assert not (looks_like(_PARAMETERS)(hostile, None) and looks_like(_HOSTNAME_PREFIX)(hostile, None))


@pytest.mark.parametrize("between", ["\n", "\r\n", "\t", "  "], ids=repr)
def test_parameters_may_stand_on_lines_of_their_own(between):
    assert looks_like(_PARAMETERS)(between.join(["", "Gres=gpu:8", 'Comment="é#"', ""]), None)


def test_no_control_character_gets_into_the_parameters_of_a_worker():
    letters = [chr(code) for code in (*range(0x20), 0x7F) if chr(code) not in WHITE]
    said = [words for c in letters for words in (f"Gres=gpu:8{c}", f"Gres=gpu:8 Weig{c}ht=10")]

    assert [words for words in said if looks_like(_PARAMETERS)(words, None)] == []
