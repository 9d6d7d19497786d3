"""What a kind may say about its schema beyond the usual: names, lists, defaults of whole objects, columns."""

from typing import Any, ClassVar

from slurm_operator.api.schema.codec import plain, read
from slurm_operator.api.schema.crd import AGE, Column, Definition, crd
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import model, prop
from slurm_operator.api.schema.openapi import schema
from slurm_operator.api.shared.meta import Meta


@model
class Inner:
    enabled: bool = prop("d", default=True)
    needed: int = prop("d")
    note: str = prop("d", default="")


@model
class Outer:
    load_balancer_ip: str = prop("d", default="", name="loadBalancerIP")
    needed_db: str = prop("d", name="neededDB")
    ordinals: list[int] = prop("d", default=[], list_type="set")
    files: list[str] = prop("d", default=[], list_type="atomic")
    inner: Inner = prop("d", default=Inner(enabled=False, needed=3, note="n"))
    gone: Inner = prop("d", default=Inner(needed=3), deprecated="use another")


@model
class Thing:
    KIND: ClassVar[Kind] = Kind(group="other.example", version="v1", kind="Thing", plural="things")
    CRD: ClassVar[Definition] = Definition(
        age=Column(name="Age", path=AGE.path, type="date", priority=1),
        has_scale=True,
        selector_path=".status.labelSelector",
    )

    metadata: Meta = prop("m", default=Meta())
    spec: Outer | None = prop("s", default=None)
    status: Inner = prop("t", default=Inner(needed=0))


def properties() -> dict[str, Any]:
    return schema(Outer)["properties"]


def test_a_field_may_have_a_name_that_is_not_its_attribute_in_camel_case() -> None:
    said = {"loadBalancerIP": "10.0.0.1", "neededDB": "db"}

    assert properties()["loadBalancerIP"]["type"] == "string"
    assert schema(Outer)["required"] == ["neededDB"]
    assert read(Outer, said).load_balancer_ip == "10.0.0.1"
    assert plain(read(Outer, said)).items() >= said.items()


def test_a_list_may_be_a_set_or_atomic() -> None:
    kinds = {name: properties()[name].get("x-kubernetes-list-type") for name in ("ordinals", "files")}

    assert kinds == {"ordinals": "set", "files": "atomic"}


def test_an_object_may_have_a_default_that_differs_from_those_of_its_fields() -> None:
    inner = properties()["inner"]

    assert inner["default"] == {"enabled": False, "needed": 3, "note": "n"}
    assert inner["properties"]["enabled"]["default"] is True
    assert "default" not in properties()["gone"]


def test_a_kind_chooses_its_last_column_and_where_autoscalers_find_its_pods() -> None:
    [version] = crd(Thing)["spec"]["versions"]
    [age] = version["additionalPrinterColumns"]

    assert (age["name"], age["priority"]) == ("Age", 1)
    assert version["subresources"]["scale"]["labelSelectorPath"] == ".status.labelSelector"


def test_an_object_without_a_spec_is_possible() -> None:
    [version] = crd(Thing)["spec"]["versions"]

    assert "required" not in version["schema"]["openAPIV3Schema"]
    assert read(Thing, {"metadata": {"name": "t"}, "spec": None}).spec is None
