"""Cutting JSON into its parts without recursion."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator.kube import envelope
from slurm_operator.kube.errors import Unreadable
from slurm_operator.kube.watch import json_split

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
plain_names = st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cs", "Cc"]))


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(plain_names, anything), st.sampled_from([None, 2]))
def test_members_are_what_a_parser_finds(document: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False).encode()

    found = {name: json.loads(bytes(value)) for name, value in json_split.members(text).items()}

    assert found == document


@settings(max_examples=40, deadline=None)
@given(st.lists(anything), st.sampled_from([None, 2]))
def test_elements_are_what_a_parser_finds(document: list[Any], indent: int | None) -> None:
    text = json.dumps(document, indent=indent).encode()

    assert [json.loads(bytes(element)) for element in json_split.elements(text)] == document


@pytest.mark.parametrize("letter", ["x", '"', "\\"])
def test_a_long_string_takes_little_memory_beside_itself(letter: str) -> None:
    document = json.dumps({"long": letter * 500_000, "name": "a"}).encode()
    tracemalloc.start()
    try:
        found = json_split.members(document)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert json.loads(bytes(found["long"])) == letter * 500_000
    assert peak < 4 * len(document)


@pytest.mark.parametrize("junk", [b"", b"null", b"[]", b'{"metadata":3}', b"<html>", b"\xff\xfe"])
def test_what_is_no_envelope_is_unreadable_and_nothing_worse(junk: bytes) -> None:
    for read in (envelope.page, envelope.event, lambda body: envelope.name(memoryview(body))):
        with pytest.raises(Unreadable):
            read(junk)
