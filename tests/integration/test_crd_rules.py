"""What the API server refuses, and the words in which it says so. No webhook is at work here."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from crd_rig import MODELS, Api, api, changed, example, leaves

from slurm_operator.api import KINDS
from slurm_operator.api.schema.crd import root_schema
from slurm_operator.api.schema.openapi import QUANTITY_PATTERN

__all__ = ["api"]

Case = dict[str, Any]
Where = tuple[str, ...]

CASES: list[Case] = yaml.safe_load((Path(__file__).parent / "crd_rules.yaml").read_text())
AT_ONCE = [case for case in CASES if "changed later" not in case]
LATER = [case for case in CASES if "changed later" in case]
BASES = {
    "Cluster": "cluster-mariadb",
    "Controller": "controller",
    "NodeSet": "nodeset",
    "LoginSet": "loginset",
    "Accounting": "accounting",
    "RestApi": "restapi",
    "Token": "token",
}


def title(case: Case) -> str:
    what = case.get("changed later") or case.get("changed") or case.get("without")
    return f"{case['example']}: {str(what)[:60]}"


@pytest.mark.parametrize("case", AT_ONCE, ids=title)
def test_a_manifest_that_breaks_a_rule_is_refused_in_these_words(
    api: Api, namespace: str, case: Case
) -> None:
    changes = {**case.get("changed", {}), **dict.fromkeys(case.get("without", []), ...)}

    answer = api.create(namespace, changed(example(case["example"]), changes), dry_run=True)

    assert answer.complaint == case["says"]


@pytest.mark.parametrize("case", LATER, ids=title)
def test_a_change_that_must_not_happen_is_refused_in_these_words(
    api: Api, namespace: str, case: Case
) -> None:
    manifest = changed(example(case["example"]), case.get("made with", {}))
    assert api.create(namespace, manifest).status == 201

    answer = api.merge(namespace, manifest, changed({}, case["changed later"]))

    assert answer.complaint == case["says"]


def test_every_rule_in_cel_is_broken_above() -> None:
    said = "\n".join(case["says"] for case in CASES)

    unheard = {
        rule["message"] for cls in KINDS for rule in rules(root_schema(cls)) if rule["message"] not in said
    }

    assert unheard == set()


def rules(schema: dict[str, Any]) -> Iterator[dict[str, str]]:
    yield from schema.get("x-kubernetes-validations", ())
    for _, inner in leaves(schema):
        yield from inner.get("x-kubernetes-validations", ())


@pytest.mark.parametrize("kind", MODELS)
def test_every_type_word_and_bound_of_every_field_is_enforced(api: Api, namespace: str, kind: str) -> None:
    """One manifest per fact of the schema, with a value that is just outside."""
    schema = root_schema(MODELS[kind])
    base = example(BASES[kind])
    let_through = []
    facts = [
        (path, fact, bad)
        for path, inner in leaves(schema)
        if path[0] == "spec"
        for fact, bad in outside(inner)
    ]

    for path, fact, bad in facts:
        answer = api.create(namespace, planted(base, schema, path, bad), dry_run=True)
        if shown(path) not in answer.complaint:
            let_through.append((shown(path), fact, answer.status, answer.complaint))

    assert len(facts) > 10
    assert let_through == []


def outside(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values that break one fact of a schema each."""
    wrong_type = {"string": 7, "integer": "seven", "boolean": "yes", "object": "word", "array": "word"}
    if schema.get("type") in wrong_type:
        yield "type", wrong_type[schema["type"]]
    if "enum" in schema:
        yield "enum", "NoSuchWord"
    if "minimum" in schema:
        yield "minimum", schema["minimum"] - 1
    if "maximum" in schema:
        yield "maximum", schema["maximum"] + 1
    if "minLength" in schema:
        yield "minLength", ""
    if "maxLength" in schema and "x-kubernetes-int-or-string" not in schema:
        yield "maxLength", "a" * (schema["maxLength"] + 1)
    if "pattern" in schema:
        bad = "16GB" if schema["pattern"] == QUANTITY_PATTERN else "not this"
        assert not re.search(schema["pattern"], bad)
        yield "pattern", bad
    if schema.get("additionalProperties", {}).get("pattern"):
        yield "pattern of values", {"memory": "16GB"}
    if "maxItems" in schema:
        yield "maxItems", [filled(schema["items"], str(index)) for index in range(schema["maxItems"] + 1)]


def filled(schema: dict[str, Any], word: str = "a") -> Any:
    """The smallest thing that a schema accepts."""
    if schema.get("type") == "object":
        return {name: filled(schema["properties"][name], word) for name in schema.get("required", ())}
    if schema.get("type") == "integer":
        return schema.get("minimum", 1)
    return word


def planted(base: dict[str, Any], schema: dict[str, Any], path: Where, value: Any) -> dict[str, Any]:
    """The base with `value` at the path, and what is required around it."""
    [name, *rest] = path
    inner = schema["properties"][name]
    if not rest:
        return {**base, name: value}
    if rest[0] == "[]":
        item = (
            value
            if rest == ["[]"]
            else planted(filled(inner["items"]), inner["items"], tuple(rest[1:]), value)
        )
        return {**base, name: [item]}
    below = base.get(name) if isinstance(base.get(name), dict) else filled(inner)
    return {**base, name: planted(below, inner, tuple(rest), value)}


def shown(path: Where) -> str:
    return ".".join(path).replace(".[]", "[0]")
