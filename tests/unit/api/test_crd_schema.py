"""From facts about fields to the schema that the API server enforces."""

from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest

from slurm_operator.api import KINDS, NodeSet
from slurm_operator.api.schema.crd import Column, Definition, crd, root_schema
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import Choice, Rule, model, prop
from slurm_operator.api.schema.openapi import Amount, Quantity, schema
from slurm_operator.api.shared.meta import Meta


class Colour(Choice):
    RED = "red", "like a tomato."
    BLUE = "blue", "like the sky."


@model
class Inner:
    size: int = prop("How big.", default=3)
    note: str = prop("A note.", default="")


@model
class Shape:
    OPEN: ClassVar[bool] = True

    image: str = prop("An image.", default="")
    limits: dict[str, Amount] = prop("Limits.", default={})


@model
class Everything:
    text: str = prop("d")
    number: int = prop("d", default=1, minimum=0, maximum=9)
    big: int = prop("d", default=0, format="int64")
    switch: bool = prop("d", default=False)
    colour: Colour = prop("Which one.", default=Colour.RED)
    time: datetime | None = prop("d", default=None)
    wait: timedelta = prop("d", default=timedelta(minutes=90))
    share: int | str = prop("d", default="25%")
    size: Quantity = prop("d", default="1Gi")
    words: list[str] = prop("d", default=[], max_items=3)
    labels: dict[str, str] = prop("d", default={})
    inner: Inner = prop("d", default=Inner())
    maybe: Inner | None = prop("d", default=None)
    keyed: list[Inner] = prop("d", default=[], keys=["size"])
    fixed: str = prop("d", default="", immutable=True)
    open: dict[str, Any] = prop("d", default={}, shape=Shape)
    any: dict[str, Any] = prop("d", default={})
    old: bool = prop("Was.", default=True, deprecated="use another")
    ruled: str = prop("d", default="", rules=[Rule(expression="self != 'x'", message="no x", path="")])


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ("text", {"type": "string"}),
        ("number", {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9, "default": 1}),
        ("big", {"type": "integer", "format": "int64", "default": 0}),
        ("switch", {"type": "boolean", "default": False}),
        (
            "colour",
            {
                "description": "Which one.\nred: like a tomato.\nblue: like the sky.",
                "type": "string",
                "enum": ["red", "blue"],
                "default": "red",
            },
        ),
        ("time", {"type": "string", "format": "date-time"}),
        ("share", {"x-kubernetes-int-or-string": True, "default": "25%"}),
        ("words", {"type": "array", "items": {"type": "string"}, "maxItems": 3}),
        ("labels", {"type": "object", "nullable": True, "additionalProperties": {"type": "string"}}),
        ("any", {"type": "object", "nullable": True, "x-kubernetes-preserve-unknown-fields": True}),
        ("old", {"description": "Was.\nDeprecated: use another", "type": "boolean"}),
        (
            "ruled",
            {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'", "message": "no x"}]},
        ),
    ],
)
def test_a_field_s_facts_become_its_schema(field: str, wanted: dict[str, Any]) -> None:
    assert schema(Everything)["properties"][field] == {"description": "d", **wanted}


def test_only_fields_without_a_default_are_required() -> None:
    assert schema(Everything)["required"] == ["text"]


def test_an_object_whose_fields_have_defaults_has_one_itself_so_that_they_apply() -> None:
    properties = schema(Everything)["properties"]

    assert properties["inner"]["default"] == {"size": 3}
    assert "default" not in properties["maybe"]
    assert properties["maybe"]["properties"]["size"]["default"] == 3


def test_status_gets_no_defaults() -> None:
    body = schema(Everything, defaults=False)["properties"]

    assert [name for name, inner in body.items() if "default" in inner] == []
    assert "default" not in body["inner"]["properties"]["size"]


def test_a_duration_is_written_as_people_type_it_and_checked_with_a_hint() -> None:
    wait = schema(Everything)["properties"]["wait"]

    assert wait["default"] == "1h30m"
    assert wait["x-kubernetes-validations"][0]["message"] == "write a duration like 90s, 15m or 1h30m"


def test_a_list_with_keys_is_a_map_to_server_side_apply() -> None:
    keyed = schema(Everything)["properties"]["keyed"]

    assert (keyed["x-kubernetes-list-type"], keyed["x-kubernetes-list-map-keys"]) == ("map", ["size"])


def test_an_immutable_field_says_what_to_do() -> None:
    [rule] = schema(Everything)["properties"]["fixed"]["x-kubernetes-validations"]

    assert rule["rule"] == "self == oldSelf"
    assert rule["message"] == "fixed cannot change; to use another one, delete the object and create it again"


@model
class Strict:
    RULES: ClassVar[tuple[Rule, ...]] = (Rule(expression="a", message="of the object", path=".size"),)

    size: int = prop("d", default=0)


@model
class Holder:
    held: Strict = prop("d", default=Strict(), rules=[Rule(expression="b", message="of the field")])


def test_rules_of_an_object_and_of_the_field_that_holds_it_both_count() -> None:
    assert schema(Holder)["properties"]["held"]["x-kubernetes-validations"] == [
        {"rule": "b", "message": "of the field"},
        {"rule": "a", "message": "of the object", "fieldPath": ".size"},
    ]


def test_an_override_lets_unknown_fields_and_null_through_and_checks_the_rest() -> None:
    override = schema(Everything)["properties"]["open"]

    assert override["x-kubernetes-preserve-unknown-fields"] is True
    assert override["properties"]["image"] == {"description": "An image.", "type": "string", "nullable": True}
    assert override["properties"]["limits"]["additionalProperties"]["nullable"] is True


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)
def test_every_field_of_every_kind_is_described(cls: type) -> None:
    assert [path for path, body in nodes(root_schema(cls)) if not body.get("description")] == ["metadata"]


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)
def test_every_schema_is_structural(cls: type) -> None:
    untyped = [
        path
        for path, body in nodes(root_schema(cls))
        if "type" not in body and "x-kubernetes-int-or-string" not in body
    ]

    assert untyped == []


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)
def test_every_kind_reports_ready_progressing_degraded(cls: type) -> None:
    status = root_schema(cls)["properties"]["status"]["properties"]

    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert "observedGeneration" in status


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)
def test_the_older_version_has_the_same_schema_but_for_its_descriptions(cls: type) -> None:
    new, old = crd(cls)["spec"]["versions"]

    assert (new["name"], new["storage"], old["name"], old["storage"]) == ("v1beta1", True, "v1alpha1", False)
    assert [path for path, _ in nodes(schema_of(new))] == [path for path, _ in nodes(schema_of(old))]
    older = schema_of(old)
    for path in cls.CRD.older_defaults:
        field, usual = older, schema_of(new)
        for word in path.split("."):
            field, usual = field["properties"][word], usual["properties"][word]
        field["default"] = usual["default"]
    assert stripped(schema_of(new)) == older


def test_a_nodeset_of_v1alpha1_with_a_word_on_its_partition_has_one() -> None:
    new, old = (
        schema_of(version)["properties"]["spec"]["properties"]["partition"]
        for version in crd(NodeSet)["spec"]["versions"]
    )

    assert (new["properties"]["enabled"]["default"], old["properties"]["enabled"]["default"]) == (False, True)
    assert old["default"] == {"enabled": False}, "without a word there is none"


def schema_of(version: dict[str, Any]) -> dict[str, Any]:
    return version["schema"]["openAPIV3Schema"]


def stripped(body: Any) -> Any:
    if isinstance(body, list):
        return [stripped(item) for item in body]
    if isinstance(body, dict):
        return {name: stripped(inner) for name, inner in body.items() if name != "description"}
    return body


def nodes(body: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name, inner in body.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        found += [(here, inner), *nodes(inner, here), *nodes(inner.get("items", {}), here)]
    return found


@model
class Other:
    """A kind of another group with a familiar name.

    With more to say.
    """

    KIND: ClassVar[Kind] = Kind(
        group="other.example", version="v1alpha1", kind="NodeSet", plural="nodesets", namespaced=False
    )
    CRD: ClassVar[Definition] = Definition(columns=(Column(name="SIZE", path=".spec.size", type="integer"),))

    metadata: Meta = prop("m", default=Meta())
    spec: Inner = prop("s")
    status: Inner = prop("t", default=Inner())


def test_two_groups_can_have_kinds_of_the_same_name() -> None:
    definition = crd(Other)

    assert definition["metadata"]["name"] == "nodesets.other.example"
    assert definition["spec"]["scope"] == "Cluster"
    assert [version["name"] for version in definition["spec"]["versions"]] == ["v1alpha1"]
    [size, age] = definition["spec"]["versions"][0]["additionalPrinterColumns"]
    assert (size["jsonPath"], age["name"]) == (".spec.size", "AGE")
    assert root_schema(Other)["description"].startswith("A kind of another group with a familiar name.\n\n")
