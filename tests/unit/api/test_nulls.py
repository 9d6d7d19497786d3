"""null outside of overrides: taken wherever Slinky's CRDs take it or server-side apply leaves it; the same as absent."""

import pytest

from slurm_operator.api import KINDS
from slurm_operator.api.schema.codec import plain, read
from slurm_operator.api.schema.crd import root_schema
from slurm_operator.api.schema.explicit_fields import explicit_fields
from slurm_operator.api.schema.problems import References
from slurm_operator.reconcilers.nodeset.creation import revisions
from testing.nulls import EMPTY_FIELDS, FIELDS, manifest

MODELS = {cls.KIND.kind: cls for cls in KINDS}


def in_schema(kind: str, path: str) -> dict:
    schema = root_schema(MODELS[kind])["properties"]["spec"]
    for word in path.split("."):
        schema = schema["items"] if word.isdecimal() else schema["properties"][word]
    return schema


ROWS = [pytest.param(*row, id=f"{row[0]}.{row[1]}") for row in (*FIELDS, *EMPTY_FIELDS)]


@pytest.mark.parametrize(("kind", "path", "value"), ROWS)
def test_a_field_that_slinky_or_server_side_apply_writes_null_into_is_nullable(kind, path, value):
    assert in_schema(kind, path).get("nullable") is True


@pytest.mark.parametrize(("kind", "path", "value"), ROWS)
def test_null_is_absent_to_the_operator(kind, path, value):
    cls = MODELS[kind]
    null, absent, set_ = (read(cls, manifest(kind, "x", path, given)) for given in (None, ..., value))

    assert null == absent
    assert plain(null) == plain(absent)
    assert explicit_fields(null.spec) == explicit_fields(absent.spec)
    assert list(null.problems(absent, References())) == list(absent.problems(null, References()))
    assert null != set_, "the field is one that is read"


@pytest.mark.parametrize(
    ("path", "value"), [row[1:] for row in (*FIELDS, *EMPTY_FIELDS) if row[0] == "NodeSet"]
)
def test_null_makes_no_other_revision(path, value):
    null, absent = (manifest("NodeSet", "x", path, given)["spec"] for given in (None, ...))

    assert revisions.intent(null) == revisions.intent(absent)


def test_null_is_taken_nowhere_else_outside_of_overrides():
    """A field that is nullable without need would let a typing error through."""
    listed = {(kind, path.replace(".0.", "[].")) for kind, path, _ in (*FIELDS, *EMPTY_FIELDS)}
    found = {
        (kind, path)
        for kind in MODELS
        for path in nullable(root_schema(MODELS[kind])["properties"]["spec"], "")
    }

    assert found == listed


def nullable(schema: dict, path: str):
    """Paths of nullable fields; not inside of overrides, where null removes."""
    for name, inner in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        if inner.get("nullable"):
            yield below
        if name == "persistence" or not inner.get("x-kubernetes-preserve-unknown-fields"):
            yield from nullable(inner, below)
            if not inner.get("items", {}).get("x-kubernetes-preserve-unknown-fields"):
                yield from nullable(inner.get("items", {}), f"{below}[]")
