import pytest

from slurm_operator.manifests.labels import matches


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a", {"a": "anything"}, True),
        ("a", {}, False),
        ("a in (b,c)", {"a": "c"}, True),
        ("a in (b, c)", {"a": "d"}, False),
        ("a=b,c=d", {"a": "b", "c": "d"}, True),
        ("a=b,c=d", {"a": "b"}, False),
        ("a in (b,c),x.y/z=1", {"a": "b", "x.y/z": "1"}, True),
        ("a in (b,c),x.y/z=1", {"a": "b", "x.y/z": "2"}, False),
    ],
)
def test_a_selector_selects_what_the_server_would_list(selector, labels, expected):
    assert matches(selector, labels) is expected


@pytest.mark.parametrize("selector", ["a!=b", "!a", "a notin (b)"])
def test_selectors_that_we_never_write_are_refused(selector):
    with pytest.raises(ValueError, match="not a selector of ours"):
        matches(selector, {"a": "c"})
